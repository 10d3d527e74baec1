"""The splitter of a match by start: puts events in order and deals them out to the instances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.cep.patterns.conditions import EventMasks
from penstock.cep.patterns.starts import Dealt, Reach, Starts
from penstock.cep.selections.instance_keys import instance_keys
from penstock.cep.selections.selections import EventBatch, Ints
from penstock.memory.layout import Columns, Layout
from penstock.metrics.degree import DegreeMetrics
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.ordered_buffer import OrderedBuffer
from penstock.operators.run.registry import runs
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.graph import Port
from penstock.query.patterns.automaton import automaton
from penstock.query.patterns.by_start import FITS, GIVEN, INSTANCE, OPENS, POSITION
from penstock.query.patterns.degree import DegreeDecider
from penstock.query.patterns.modes import Contiguity
from penstock.query.steps import MatchSplitSpec
from penstock.query.types import DataType, Field
from penstock.state.keys import KeyWords
from penstock.state.tables import StateFormat, StateRows

_STANDING = ("$position", "$dealt", "$broken", "$planned")
_INSTANCES = ("$instance", "$position", "$time")
_CONTROL = (
    Field("$name", DataType.STRING),
    Field("$place", DataType.INT64),
    Field("$value", DataType.FLOAT64),
)
_NAMED = -1  # as a place in an array of the control: there is such an array


@runs(MatchSplitSpec)
class MatchSplitter(Operator):
    """Holds events until the watermark passes them, then sends each to every instance that may need it.

    An event comes out once per such instance, with that instance's key, its place in the stream, whether it
    begins one of the instance's selections, and what it could be in the pattern.
    """

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(MatchSplitSpec)
        layout = build.inputs[0]
        assert layout.time is not None
        match, self._degree = spec.match, spec.degree
        found = automaton(match.pattern, cut=match.contiguity is not Contiguity.ANY)
        self._reach = Reach.of(match, found)
        self._masks = EventMasks(found.events, layout, build.strings)
        self._time = layout.data(layout.time)
        self._output = build.outputs.get(Port.MAIN)
        self._held = OrderedBuffer(layout)
        self.state_formats = (
            StateFormat("held", layout.fields),
            StateFormat("standing", [Field(name, DataType.INT64) for name in _STANDING]),
            StateFormat("instances", [Field(name, DataType.INT64) for name in _INSTANCES]),
            StateFormat("control", _CONTROL),
        )
        self._hash = KeyHash(KeyWords(()), build.strings)
        self._begin()

    def _begin(self) -> None:
        self._starts = Starts(self._reach)
        self._control: DegreeDecider | None = None
        if self._degree.control is not None:
            self._control = self._degree.control()
        self._planned = 0  # what the control asked for last; 0: nothing yet

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self.divert_late(index, columns, start, stop)
        self._held.add(columns, start, stop)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        columns, count = self._held.release(watermark_us)
        if not count:
            return
        columns = tuple(np.ascontiguousarray(column) for column in columns)
        times, masks = columns[self._time], self._masks(columns, count)
        first = 0
        while first < count:  # a planned change of degree falls between two events
            stop = min(count, first + self._unchanged())
            begins = self._starts.position
            dealt = self._starts.deal(times[first:stop], masks[first:stop], self._observed)
            self._send(columns, masks, first, begins, dealt)
            self._look(EventBatch(begins, times[first:stop], _named(self.inputs[0], columns, first, stop)))
            first = stop

    @property
    def degree(self) -> DegreeMetrics | None:
        """None before the first event: in most tasks there will never be one."""
        if not self._starts.position:
            return None
        planned = self._planned or self._observed
        return DegreeMetrics(planned, self._observed, self._observed, self._degree.most)

    @property
    def _observed(self) -> int:
        """How many instances get first events now."""
        if self._planned:
            return min(self._planned, self._degree.most)
        begun = [degree for at, degree in self._degree.changes if at <= self._starts.position]
        return begun[-1] if begun else self._degree.start

    def _unchanged(self) -> int:
        """How many events there are until the next planned change."""
        position = self._starts.position
        coming = [at - position for at, _ in self._degree.changes if at > position]
        return min(coming, default=1 << 62)

    def _look(self, batch: EventBatch) -> None:
        if self._control is not None and (wanted := self._control.observe(batch)) is not None:
            self._planned = max(1, wanted)

    def _send(self, columns: Columns, masks: Ints, first: int, begins: int, dealt: Dealt) -> None:
        if self._output is None or not len(dealt.rows):
            return
        rows = first + dealt.rows
        keys = np.array(instance_keys(int(dealt.instances.max()) + 1), np.int64)
        given: dict[str, NDArray[Any]] = {
            INSTANCE: keys[dealt.instances],
            POSITION: begins + dealt.rows,
            OPENS: dealt.opens,
            FITS: masks[rows],
        }
        source, made = self.inputs[0], []
        for field in self._output.fields:
            if field.name in GIVEN:
                made.append(given[field.name])
                continue
            made.append(columns[source.data(field.name)][rows])
            nulls = source.nulls(field.name)
            if nulls is not None:
                made.append(columns[nulls][rows])
        self.emit(tuple(made), len(rows))

    # -- state ---------------------------------------------------------------------------------------------

    def _state_rows(self) -> list[StateRows]:
        held, starts = self._held.rows(), self._starts
        standing: list[list[int]] = []
        if starts.position:
            standing.append([starts.position, starts.dealt, starts.broken, self._planned])
        instances = [[instance, *last] for instance, last in sorted(starts.last.items())]
        kept: list[tuple[int, int, float]] = []
        if self._control is not None and starts.position:
            for name, listed in self._control.export().items():
                code = self.strings.code(name)
                kept.append((code, _NAMED, 0.0))  # an empty array comes back too
                kept += [(code, place, float(value)) for place, value in enumerate(np.ravel(listed))]
        types = (np.int32, np.int64, np.float64)
        control = tuple(np.array([row[i] for row in kept], kind) for i, kind in enumerate(types))
        tables = [held, _columns(standing, len(_STANDING)), _columns(instances, len(_INSTANCES)), control]
        return [(columns, self._hash.of_columns((), len(columns[0]))) for columns in tables]

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        held, standing, instances, control = rows
        self._held.add(held, 0, len(held[0]))
        if len(standing[0]):
            if self._starts.position or len(standing[0]) > 1:
                raise self._given_twice()
            position, dealt, broken, planned = (int(column[0]) for column in standing)
            self._starts = Starts(self._reach, position, dealt, broken)
            self._planned = planned if self._control is not None else 0
        for instance, position, time in zip(*(column.tolist() for column in instances), strict=True):
            self._starts.last[instance] = (position, time)
        if self._control is not None and len(control[0]):
            names, places, values = control
            by_place = np.lexsort((places, names))
            names, values = names[by_place], values[by_place]
            self._control.restore(
                {self.strings.text(code): values[names == code][1:] for code in np.unique(names).tolist()}
            )

    def reset(self) -> None:
        super().reset()
        self._held.clear()
        self._begin()

    @property
    def state_bytes(self) -> int:
        return self._held.bytes


def _columns(rows: list[list[int]], width: int) -> Columns:
    matrix = np.array(rows, np.int64).reshape(-1, width)
    return tuple(np.ascontiguousarray(matrix[:, place]) for place in range(width))


def _named(layout: Layout, columns: Columns, first: int, stop: int) -> dict[str, NDArray[Any]]:
    """The visible columns by name, for a control that counts some events only."""
    return {name: columns[layout.data(name)][first:stop] for name in layout.visible.names}
