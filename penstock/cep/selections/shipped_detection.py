"""A detector in many tasks: closed selections travel with their events, and only the splitter and the merger
keep anything between batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.cep.event_columns import NULL, Named, in_layout, named, text_names
from penstock.cep.selections.detecting import Detecting
from penstock.cep.selections.instance_keys import instance_keys
from penstock.cep.selections.instances import Assigned
from penstock.cep.selections.selections import Ints
from penstock.cep.selections.splitter import union
from penstock.cep.selections.splitter_operator import SplitterOperator
from penstock.cep.selections.splitter_state import SplitterState
from penstock.memory.layout import Columns
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.registry import runs
from penstock.operators.windows.panes import ranges
from penstock.query.graph import Port
from penstock.query.steps import DetectSpec
from penstock.query.steps.spec import PLACE, TIMED, Means, Names, PartialStep, complete
from penstock.query.types import DataType, Field, Schema
from penstock.state.tables import StateRows

#: The key of a row's instance.
INSTANCE = "$instance"
#: A row is an event, or a selection. Of an event: its position and time. Of a selection: its closer's.
POSITION, AT = "$position", "$at"
#: Of a selection; an event has number −1.
NUMBER, START, STOP = "$number", "$start", "$stop"
_OURS = (INSTANCE, POSITION, AT, NUMBER, START, STOP)
_NO_NUMBER = -1


def shipped_schema(events: Schema) -> Schema:
    """The columns of what the splitter sends to the instances of a stream of such events."""
    ours = [Field(name, DataType.TIMESTAMP if name == AT else DataType.INT64) for name in _OURS]
    return Schema([*ours, *events])


@dataclass(frozen=True, eq=False)
class _DetectorPart(PartialStep):
    spec: DetectSpec

    def means(self) -> Means:
        return self.spec.means()

    def functions(self) -> tuple[Any, ...]:
        return self.spec.functions()


@complete
@dataclass(frozen=True, eq=False)
class ShippedSplitterPart(_DetectorPart):
    """Closes selections and sends them with their events."""

    name = "splitter"
    timed = True

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return TIMED.union(PLACE, schema.names)


@complete
@dataclass(frozen=True, eq=False)
class InstancesPart(_DetectorPart):
    """Works on selections, by instance."""

    name = "instances"

    def routed_by(self, index: int) -> tuple[str, ...] | None:
        return (INSTANCE,)


@runs(ShippedSplitterPart)
class ShippingSplitter(SplitterOperator):
    """Sends selections that have closed with their events, each event once to an instance, and keeps what is
    still open: that is its state."""

    def __init__(self, build: Build) -> None:
        part = build.node.spec_as(ShippedSplitterPart)
        self._keys = np.array(instance_keys(part.spec.degree.most), np.int64)
        super().__init__(build, part.spec)
        self._state = SplitterState(build.inputs[0])
        self.state_formats = self._state.formats

    def _send(self, assigned: Assigned, places: Ints, closed_at: Ints) -> None:
        first = int(assigned.starts.min())
        events = self._buffer.between(first, int(assigned.stops.max()))
        rows: list[Ints] = []
        owners: list[Ints] = []
        for place in np.unique(places).tolist():
            mine = np.flatnonzero(places == place)
            mine = mine[np.argsort(assigned.starts[mine], kind="stable")]
            parts = union(assigned.starts[mine], assigned.stops[mine])
            starts, stops = (np.array(bounds, np.int64) for bounds in zip(*parts, strict=True))
            found = ranges(starts, stops - starts) - first
            rows.append(found)
            owners.append(np.full(len(found), place))
        at, owner = np.concatenate(rows), np.concatenate(owners)
        values: Named = {name: column[at] for name, column in events.columns.items()}
        values |= {INSTANCE: self._key(owner), POSITION: first + at, AT: events.times[at]}
        values |= dict.fromkeys((START, STOP), np.zeros(len(at), np.int64))
        values[NUMBER] = np.full(len(at), _NO_NUMBER)
        self.emit(in_layout(self._output, values), len(at))
        count = len(places)
        bounds: Named = {
            INSTANCE: self._key(places),
            POSITION: assigned.closers,
            AT: closed_at,
            NUMBER: assigned.numbers,
            START: assigned.starts,
            STOP: assigned.stops,
        }
        self.emit(in_layout(self._output, self._no_event(count) | bounds), count)
        self._splitter.done_with(assigned.numbers)

    def _key(self, places: Ints) -> Ints:
        return self._keys[places % len(self._keys)]  # an earlier run may have had more

    def _no_event(self, count: int) -> Named:
        """What stands in the events' columns of selections: nulls, zeros and empty texts."""
        values = named(self._output, self._output.allocate(count))
        for name in self._texts:
            values[name][:] = self.strings.code("")
        for name in values:
            if name.endswith(NULL):
                values[name][:] = True
        return values

    def _state_rows(self) -> list[StateRows]:
        return self._state.rows(self)

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        if not self._state.restore(self, rows):
            raise self._given_twice()


@runs(InstancesPart)
class Instances(Operator):
    """All instances whose keys its task has. It works on what a batch brings and keeps nothing for the next:
    so instances move from task to task without anything that would have to move with them."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        part = build.node.spec_as(InstancesPart)
        self._spec = part.spec
        layout = self._layout = build.inputs[0]
        self._texts = text_names(layout)
        self._output = build.outputs[Port.MAIN]
        self._rows: list[Columns] = []
        self._detecting: dict[int, Detecting] = {}

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self._rows.append(tuple(column[start:stop].copy() for column in columns))
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        # what the splitter sent for this watermark is complete
        if not self._rows:
            return
        columns = tuple(np.concatenate(arrays) for arrays in zip(*self._rows, strict=True))
        self._rows.clear()
        keys = columns[self._layout.data(INSTANCE)]
        for key in np.unique(keys).tolist():
            self._work(key, tuple(column[keys == key] for column in columns))

    def _work(self, key: int, columns: Columns) -> None:
        place = {name: self._layout.data(name) for name in _OURS}
        is_event = columns[place[NUMBER]] == _NO_NUMBER
        events, selections = (tuple(column[chosen] for column in columns) for chosen in (is_event, ~is_event))
        # in the order of the stream; an event that came for two watermarks came twice
        positions, order = np.unique(events[place[POSITION]], return_index=True)
        starts, stops = selections[place[START]], selections[place[STOP]]
        assigned = Assigned(
            selections[place[NUMBER]],
            np.searchsorted(positions, starts),
            np.searchsorted(positions, stops),
            selections[place[POSITION]],
        )
        if not np.array_equal(assigned.stops - assigned.starts, stops - starts):
            raise RuntimeError(f"step '{self.step}': a selection came without all of its events")
        if key not in self._detecting:
            self._detecting[key] = Detecting(self._spec, self._texts, self.strings, self.step)
        times = events[place[AT]][order]
        values = named(self._layout, events, order, _OURS)
        found, count = self._detecting[key].work(values, times, assigned, selections[place[AT]])
        if count:
            self.emit(in_layout(self._output, found), count)

    def _state_rows(self) -> list[StateRows]:
        if self._rows:
            raise RuntimeError(f"step '{self.step}': selections were left without a watermark")
        return []

    def reset(self) -> None:
        super().reset()
        self._rows.clear()
