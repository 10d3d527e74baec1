"""The native prefix: the first steps after a DataFrame source, run by Spark itself.

Every row that crosses into Python costs, so filters, projections, lookups and, where possible, partial
aggregates run as native expressions, as long as the stream is not split up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as fn

from penstock.memory.layout import LATE, ORDER, SUB, TIME, Layout
from penstock.operators.plan import Plan
from penstock.query.graph import FilterSpec, Graph, Input, Node, Port, SourceSpec
from penstock.query.types import DataType
from penstock.spark.frames import CORRUPT, FrameSource
from penstock.spark.lowering import constant, lowers, named
from penstock.spark.native_step import NativeStep, lowered
from penstock.spark.partial import PartialAggregate, partial_of

#: Filters side by side whose alternatives are worth testing twice.
MAX_ALTERNATIVES = 16

_REASON, _RECORD = "$reason", "$record"
_RECORD_CHARS = 1_000
_STAMPED = (ORDER, SUB)  # what Python adds to the rows


@dataclass(frozen=True)
class Observed:
    """What was in a batch: events, records set aside, the largest event time, and how many events a partial
    aggregate left out because they were late.
    """

    events: int
    bad: int
    latest_us: int | None
    late: int


@dataclass(frozen=True, eq=False)
class Lowered:
    """A batch after the prefix. ``observed`` may be asked once an action over ``frame`` has succeeded."""

    frame: DataFrame
    _seen: Observation
    _late: Observation | None

    def observed(self) -> Observed:
        seen = self._seen.get
        late = 0 if self._late is None else self._late.get["late"]
        return Observed(seen["events"], seen["bad"], seen["latest"], late or 0)


def plan_prefix(graph: Graph, source: Node, layouts: Plan) -> Prefix:
    """Which steps Spark does; ``graph`` is without plain projections, and ``layouts`` is its plan.

    Asks Spark nothing, so that it can be shown before a run.
    """
    spec = source.spec
    assert isinstance(spec, SourceSpec)
    fallback = Layout([source.schema[spec.event_time]], spec.event_time)
    first = layouts.layouts.get((source.id, Port.MAIN), fallback)
    steps: list[NativeStep] = []
    node, layout = source, first
    while len(readers := graph.consumers(node.id)) == 1:
        reader = readers[0][0]
        target = layouts.layouts.get((reader.id, Port.MAIN))
        if target is None or not (step := NativeStep(reader, layout, target)).lowers:
            break
        steps.append(step)
        node, layout = reader, target
    partial = None
    if len(readers) == 1:
        partial = partial_of(readers[0][0], layout, layouts.outputs(readers[0][0]))
    if partial is None:
        # a join is planned and sent in every batch, which pays only if few rows go on to Python
        steps = steps[: next((place for place, step in enumerate(steps) if step.joins), len(steps))]
        node, layout = (steps[-1].node, steps[-1].target) if steps else (source, first)
    predicates = _alternatives(graph, node, layout) if partial is None else ()
    reads_bad = bool(graph.consumers(source.id, Port.BAD))
    return Prefix(source, first, tuple(steps), Input(node.id), layout, partial, predicates, reads_bad)


def _alternatives(graph: Graph, node: Node, layout: Layout) -> tuple[FilterSpec, ...]:
    """The filters that split the stream up, if nothing else reads it: what none of them keeps is in vain."""
    specs = [reader.spec for reader, _ in graph.consumers(node.id)]
    filters = [spec for spec in specs if isinstance(spec, FilterSpec)]
    if not 1 < len(filters) <= MAX_ALTERNATIVES or len(filters) != len(specs):
        return ()
    native = all(lowers(spec.predicate, layout.schema) for spec in filters)
    return tuple(filters) if native else ()


@dataclass(frozen=True, eq=False)
class Prefix:
    """What Spark does with every batch of a DataFrame source.

    The lowered rows are those of the output ``at``, in ``layout``, or, if there is a ``partial``, rows of the
    table ``groups`` of the window aggregate ``partial.node``.
    """

    source: Node
    first: Layout  # of the source's own output
    steps: tuple[NativeStep, ...]
    at: Input
    layout: Layout
    partial: PartialAggregate | None
    alternatives: tuple[FilterSpec, ...]
    reads_bad: bool

    @property
    def done(self) -> tuple[str, ...]:
        """The steps whose work is done when the rows come to Python."""
        return tuple(step.node.id for step in self.steps)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the lowered rows, if there is no ``partial``: the layout's, but for those that
        depend on a row's place.
        """
        return tuple(name for name in self.layout.names if name not in _STAMPED)

    def prune(self, stream: DataFrame) -> DataFrame:
        """The columns of the stream (``FrameSource.frame``) that somebody reads, and what is wrong with
        each record. To be done before the stream is cut into batches: inside a batch, Spark has read
        everything already.
        """
        columns = [named(name) for name in self.first.visible.names]
        problems = self._problems(CORRUPT in stream.columns)
        if problems is not None:
            columns.append(problems.alias(_REASON))
            if self.reads_bad:
                columns.append(self._record(stream).alias(_RECORD))
        return stream.select(columns)

    def apply(self, batch: DataFrame, watermark_us: int | None = None) -> Lowered:
        """The rows of a batch that came from ``prune``; ``watermark_us`` is the watermark at its start."""
        checked = _REASON in batch.columns
        seen = Observation()
        frame = batch.observe(seen, *(self._metrics_checked if checked else self._metrics))
        conditions = [fn.isnull(named(_REASON))] if checked else []
        late = self._late(watermark_us) if LATE in self.first else None
        layout, exact = self.first, False  # of the frame as it is: filters leave columns for later
        for step in self.steps:
            if step.condition is not None:
                conditions.append(step.condition)
            columns, exact = step.columns, False
            if columns is None and not step.joins:
                continue
            frame = _filtered(frame, conditions)
            if columns is None:
                frame, taken = step.join.join(frame)
                columns = step.with_taken(taken)
            frame = frame.select([*columns, *_system(layout, step.target, late)])
            late = named(LATE) if LATE in step.target else None
            layout, exact = step.target, True
        if self.partial is not None:
            return self._aggregated(frame, conditions, seen, late if watermark_us is not None else None)
        if self.alternatives:
            conditions.append(self._any)
        frame = _filtered(frame, conditions)
        if not exact:
            columns = [named(name) for name in self.layout.visible.names]
            frame = frame.select([*columns, *_system(layout, self.layout, late)])
        return Lowered(frame, seen, None)

    def bad(self, batch: DataFrame) -> DataFrame:
        """The records of a batch that were set aside, as bad records; only if somebody reads them."""
        numbered = batch.select(
            fn.spark_partition_id().alias("partition"),
            # the lower bits count the rows of a partition
            fn.monotonically_increasing_id().bitwiseAND(fn.lit((1 << 33) - 1)).alias("offset"),
            named(_RECORD).alias("record"),
            named(_REASON).alias("reason"),
        )
        return numbered.filter(fn.isnotnull("reason"))

    def _aggregated(
        self, frame: DataFrame, conditions: list[Column], seen: Observation, late: Column | None
    ) -> Lowered:
        assert self.partial is not None
        frame = _filtered(frame, conditions)
        if late is None:
            return Lowered(self.partial.apply(frame), seen, None)
        counted = Observation()
        frame = frame.observe(counted, fn.count_if(late).alias("late")).filter(~late)
        return Lowered(self.partial.apply(frame), seen, counted)

    def _late(self, watermark_us: int | None) -> Column:
        if watermark_us is None:
            return fn.lit(False)
        return self._micros < constant(watermark_us, DataType.INT64)

    def _problems(self, has_corrupt: bool) -> Column | None:
        """Why a record is bad, null if it is not; None if that cannot be."""
        spec = self.source.spec
        assert isinstance(spec, SourceSpec)
        source = spec.source
        assert isinstance(source, FrameSource)
        reasons = [(fn.isnotnull(named(CORRUPT)), "Spark cannot parse it")] if has_corrupt else []
        for name in source.checked(spec.event_time):
            reasons.append((fn.isnull(named(name)), f"column '{name}' is null"))
        if not reasons:
            return None
        return fn.coalesce(*(fn.when(condition, fn.lit(text)) for condition, text in reasons), fn.lit(None))

    def _record(self, stream: DataFrame) -> Column:
        """The text of a record that is bad."""
        columns = [named(name) for name in stream.columns if name != CORRUPT]
        text = fn.to_json(fn.struct(*columns))
        if CORRUPT in stream.columns:
            text = fn.coalesce(named(CORRUPT), text)
        problem = self._problems(CORRUPT in stream.columns)
        assert problem is not None
        return fn.when(fn.isnotnull(problem), fn.substring(text, 1, _RECORD_CHARS))

    @cached_property
    def _micros(self) -> Column:
        assert self.first.time is not None
        return fn.unix_micros(named(self.first.time))

    @cached_property
    def _metrics(self) -> list[Column]:
        events = fn.count(fn.lit(1)).alias("events")
        return [events, fn.lit(0).alias("bad"), fn.max(self._micros).alias("latest")]

    @cached_property
    def _metrics_checked(self) -> list[Column]:
        good = fn.isnull(named(_REASON))
        return [
            fn.count_if(good).alias("events"),
            fn.count(named(_REASON)).alias("bad"),
            fn.max(fn.when(good, self._micros)).alias("latest"),
        ]

    @cached_property
    def _any(self) -> Column:
        """Whether one of the alternatives keeps the event."""
        schema = self.layout.schema
        return reduce(or_, (lowered(spec.predicate, schema) for spec in self.alternatives))


def _filtered(frame: DataFrame, conditions: list[Column]) -> DataFrame:
    """The frame with these conditions, which are then done with."""
    if conditions:
        frame = frame.filter(reduce(and_, conditions))
        conditions.clear()
    return frame


def _system(layout: Layout, target: Layout, late: Column | None) -> list[Column]:
    """Penstock's own columns of ``target``, from a frame in ``layout``."""
    columns = []
    if TIME in target:
        assert layout.time is not None
        columns.append(named(layout.time).alias(TIME))
    if LATE in target:
        assert late is not None
        columns.append(late.alias(LATE))
    return columns
