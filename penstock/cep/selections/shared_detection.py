"""A detector in one process: events stay with the splitter, each once, and the bounds of selections go to
operators, one for each instance."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from penstock.cep.event_columns import in_layout, text_names
from penstock.cep.selections.detecting import Detecting
from penstock.cep.selections.instances import Assigned, EventBuffer
from penstock.cep.selections.merger_operator import MergerOperator
from penstock.cep.selections.selections import Ints
from penstock.cep.selections.splitter_operator import SplitterOperator
from penstock.memory.layout import Columns
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.registry import runs
from penstock.query.graph import Port
from penstock.query.steps import DetectSpec
from penstock.query.steps.spec import PLACE, TIMED, Names, PartialStep, complete
from penstock.query.types import DataType, Field, Schema

#: The columns of a selection on its way to its instance.
BOUNDS = Schema(
    [
        Field("place", DataType.INT64),  # of its instance
        Field("number", DataType.INT64),
        Field("start", DataType.INT64),
        Field("stop", DataType.INT64),
        Field("closer", DataType.INT64),
        Field("closed_at", DataType.TIMESTAMP),
    ]
)

#: Selections that an instance works on before it passes on what it found.
_AT_ONCE = 64


@dataclass
class Shared:
    """What the parts of one detector share while they run. The splitter alone changes the buffer."""

    spec: DetectSpec
    buffer: EventBuffer = field(default_factory=EventBuffer)
    texts: frozenset[str] = frozenset()  # which columns of the events are texts
    done: deque[Ints] = field(default_factory=deque)  # numbers of selections that instances are done with


@complete
@dataclass(frozen=True, eq=False)
class SharedSplitterPart(PartialStep):
    """Closes selections and sends their bounds."""

    name = "splitter"
    timed = True

    shared: Shared

    def routed_by(self, index: int) -> tuple[str, ...] | None:
        return None

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return TIMED.union(PLACE, schema.names)


@complete
@dataclass(frozen=True, eq=False)
class InstancePart(PartialStep):
    """Works on the selections of one instance."""

    name = "instance"

    shared: Shared
    place: int

    def routed_by(self, index: int) -> tuple[str, ...] | None:
        return None


@complete
@dataclass(frozen=True, eq=False)
class MergerPart(PartialStep):
    """Gives what instances found one order. It keeps the id of the user's step."""

    name = "merger"


runs(MergerPart)(MergerOperator)


@runs(SharedSplitterPart)
class SharingSplitter(SplitterOperator):
    """An event stays in the buffer until every instance has worked on every selection that holds it."""

    def __init__(self, build: Build) -> None:
        part = build.node.spec_as(SharedSplitterPart)
        self._shared = shared = part.shared
        super().__init__(build, shared.spec)
        shared.texts = text_names(build.inputs[0])

    def _begin(self) -> None:
        super()._begin()
        self._shared.buffer, self._shared.done = self._buffer, deque()

    def _send(self, assigned: Assigned, places: Ints, closed_at: Ints) -> None:
        values = {
            "place": places,
            "number": assigned.numbers,
            "start": assigned.starts,
            "stop": assigned.stops,
            "closer": assigned.closers,
            "closed_at": closed_at,
        }
        self.emit(in_layout(self._output, values), len(places))

    def _acknowledge(self) -> None:
        done = self._shared.done
        numbers = [done.popleft() for _ in range(len(done))]
        if numbers:
            self._splitter.done_with(np.concatenate(numbers))


@runs(InstancePart)
class InstanceOperator(Operator):
    """Works on the selections that are its own; rows of other instances pass it by."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        part = build.node.spec_as(InstancePart)
        self._shared, self._place = part.shared, part.place
        shared = part.shared
        self._detecting = Detecting(shared.spec, shared.texts, self.strings, self.step)
        layout = build.inputs[0]
        self._bounds = [layout.data(field.name) for field in BOUNDS]
        self._output = build.outputs[Port.MAIN]

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        places, *others = (columns[place] for place in self._bounds)
        mine = start + np.flatnonzero(places[start:stop] == self._place)
        for done in range(0, len(mine), _AT_ONCE):
            rows = mine[done : done + _AT_ONCE]
            *bounds, closed_at = (column[rows] for column in others)
            self._work(Assigned(*bounds), closed_at)
            if self.has_ready_rows and done + _AT_ONCE < len(mine):
                return int(rows[-1]) + 1 - start
        return stop - start

    def _work(self, assigned: Assigned, closed_at: Ints) -> None:
        first = int(assigned.starts.min())
        events = self._shared.buffer.between(first, int(assigned.stops.max()))
        here = Assigned(assigned.numbers, assigned.starts - first, assigned.stops - first, assigned.closers)
        rows, count = self._detecting.work(events.columns, events.times, here, closed_at)
        if count:
            self.emit(in_layout(self._output, rows), count)
        self._shared.done.append(assigned.numbers)
