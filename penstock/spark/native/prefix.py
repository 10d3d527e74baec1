"""The native prefix: the first steps after a DataFrame source, run by Spark itself.

Every row that crosses into Python costs, so filters, projections, lookups and, where possible, partial
aggregates run as native expressions, as long as the stream is not split up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from penstock.memory.layout import LATE, ORDER, SUB, TIME, Layout
from penstock.operators.run.plan import LayoutPlan
from penstock.query.graph import Graph, Input, Port, QueryVertex
from penstock.query.steps import FilterSpec, SourceSpec
from penstock.spark.frames.streams import CORRUPT, FrameSource
from penstock.spark.native.lookups import array_of
from penstock.spark.native.lowering import lowers, named
from penstock.spark.native.native_step import NativeStep, lowered
from penstock.spark.native.partial import PartialAggregate, partial_of

#: Filters side by side whose alternatives are worth testing twice.
MAX_ALTERNATIVES = 16

#: Columns beside the stream's own: why a record is bad, and its text.
REASON, RECORD = "$reason", "$record"
_BAD = "$bad"
_RECORD_CHARS = 1_000
_STAMPED = (ORDER, SUB)  # what Python adds to the rows


def plan_prefix(graph: Graph, source: QueryVertex, layouts: LayoutPlan) -> Prefix:
    """Which steps Spark does; ``graph`` is without plain projections, and ``layouts`` is its plan.

    Asks Spark nothing, so that it can be shown before a run.
    """
    spec = source.spec_as(SourceSpec)
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


def _alternatives(graph: Graph, node: QueryVertex, layout: Layout) -> tuple[FilterSpec, ...]:
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

    source: QueryVertex
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
        spec = self.source.spec_as(SourceSpec)
        assert isinstance(spec.source, FrameSource)
        only_time = set(spec.source.checked(spec.event_time)) <= {spec.event_time}
        if only_time and not self.reads_bad and CORRUPT not in stream.columns:
            return stream.select(columns)  # whoever reads the time sees whether it is null
        problems = self._problems(CORRUPT in stream.columns)
        if problems is not None:
            columns.append(problems.alias(REASON))
            if self.reads_bad:
                columns.append(self._record(stream).alias(RECORD))
        return stream.select(columns)

    def _bad(self, batch: DataFrame) -> Column | None:
        if REASON in batch.columns:
            return fn.isnotnull(named(REASON))
        spec = self.source.spec_as(SourceSpec)
        assert isinstance(spec.source, FrameSource)
        return fn.isnull(named(spec.event_time)) if spec.source.checked(spec.event_time) else None

    @property
    def never_bad(self) -> bool:
        """Whether the stream has no bad records."""
        spec = self.source.spec_as(SourceSpec)
        assert isinstance(spec.source, FrameSource)
        return not spec.source.checked(spec.event_time) and not spec.source.tells_corrupt

    @property
    def counts_bad(self) -> bool:
        """Whether ``apply`` tells how many records are bad: a join would leave them out unseen."""
        return self.partial is not None and not any(step.joins for step in self.steps)

    def apply(self, batch: DataFrame, watermark_us: int | None = None) -> DataFrame:
        """The rows of a batch that came from ``prune``; ``watermark_us`` is the watermark at its start.

        Bad records are left out; where there is a ``partial``, they are counted.
        """
        frame = batch
        bad = self._bad(batch)
        conditions: list[Column] = []
        if bad is not None and not self.counts_bad:
            conditions, bad = [~bad], None
        late = self._late(watermark_us) if LATE in self.first else None
        layout, exact = self.first, False  # of the frame as it is: filters leave columns for later
        keys: dict[str, Column] = {}
        for step in self.steps:
            if step.condition is not None:
                conditions.append(step.condition if bad is None else bad | step.condition)
            columns, exact = step.columns, False
            if columns is None and not step.joins:
                continue
            if step is self.steps[-1] and self.partial is not None and self.partial.takes(step.taken):
                keys = step.taken or {}  # no projection of its own: each one is a plan to make, every batch
                break
            frame = _filtered(frame, conditions)
            if columns is None:
                frame, taken = step.join.join(frame)
                columns = step.with_taken(taken)
            frame = frame.select([*columns, *_system(layout, step.target, late), *_flag(bad)])
            bad = None if bad is None else named(_BAD)
            late = named(LATE) if LATE in step.target else None
            layout, exact = step.target, True
        if self.partial is not None:
            groups = _filtered(frame, conditions)
            return self.partial.apply(groups, late if watermark_us is not None else None, bad, keys)
        if self.alternatives:
            conditions.append(self._any)
        frame = _filtered(frame, conditions)
        if not exact:
            columns = [named(name) for name in self.layout.visible.names]
            frame = frame.select([*columns, *_system(layout, self.layout, late)])
        return frame

    def _late(self, watermark_us: int | None) -> Column:
        if watermark_us is None:
            return fn.lit(False)
        # A number would be part of the Java code that Spark makes, and every batch would compile its own and
        # run it cold. An array is given to the code; an index that depends on the row keeps it one.
        either = array_of(np.array([watermark_us, watermark_us], np.int64))
        return self._micros < fn.get(either, fn.shiftrightunsigned(self._micros, 63).cast("int"))

    def _problems(self, has_corrupt: bool) -> Column | None:
        """Why a record is bad, null if it is not; None if that cannot be."""
        spec = self.source.spec_as(SourceSpec)
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
    def _any(self) -> Column:
        """Whether one of the alternatives keeps the event."""
        schema = self.layout.schema
        return reduce(or_, (lowered(spec.predicate, schema) for spec in self.alternatives))


def _flag(bad: Column | None) -> list[Column]:
    return [] if bad is None else [bad.alias(_BAD)]


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
