"""The operators of a parallel detector: splitter, instance and merger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.cep.instances import Assigned, work_on
from penstock.cep.merger import Merger, Place
from penstock.cep.selections import EventBatch, Ints
from penstock.cep.splitter import Dealt, Splitter
from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import ORDER, Columns, Layout
from penstock.operators.base import Build, Operator
from penstock.operators.ordered_buffer import OrderedBuffer
from penstock.scaling.adaptation import Act, Command, Fleet

if TYPE_CHECKING:
    from penstock.cep.parallel import Detection

#: Selections that an instance works on before it passes on what it found.
_AT_ONCE = 64
_NULL = "$null"  # a column's mask stands beside it under this name


class SplitterOperator(Operator):
    """Puts events in order, cuts selections, and sends the bounds of closed ones to their instances.

    An event stays in the buffer until every instance has worked on every selection that holds it.
    """

    def __init__(self, build: Build, detection: Detection) -> None:
        super().__init__(build)
        layout = build.inputs[0]
        assert layout.time is not None
        self._detection = detection
        self._time = layout.data(layout.time)
        self._held = OrderedBuffer(layout)
        self._splitter = Splitter(detection.predicates(), detection.rule, acknowledges_selections=True)
        self._fleet = Fleet.of(detection.degree)
        self._free = list(range(detection.degree, detection.most))  # operators without an instance
        self._runs: dict[int, int] = {}  # instance of the fleet → its operator
        for number in range(detection.degree):
            self._runs[number] = number
            self._splitter.register(number)
        self._changes = list(detection.changes)
        self._control = detection.control() if detection.control is not None else None
        self._stop = 0
        self._last_us = 0

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self.divert_late(index, columns, start, stop)
        self._held.add(columns, start, stop)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        self._acknowledge()
        columns, count = self._held.release(watermark_us)
        first = 0
        while first < count:  # a planned change of degree falls between two events
            upto = count
            while self._changes and self._changes[0][0] <= self._stop:
                self._detection.request(self._changes.pop(0)[1])
            if self._changes:
                upto = min(count, first + self._changes[0][0] - self._stop)
            self._change_degree()
            self._split(columns, first, upto)
            first = upto
        if watermark_us == END_OF_TIME:
            self._send(self._splitter.finish())

    def _split(self, columns: Columns, first: int, stop: int) -> None:
        batch = EventBatch(
            self._stop, columns[self._time][first:stop], _named(self.inputs[0], columns, first, stop)
        )
        self._stop = batch.stop
        self._last_us = int(batch.times[-1])
        self._detection.buffer.add(batch)
        self._send(self._splitter.split(batch))
        if self._control is not None and (wanted := self._control.observe(batch)) is not None:
            self._detection.request(min(wanted, self._detection.most))

    def _send(self, dealt: Dealt) -> None:
        cuts = dealt.cuts
        if not len(cuts.closed):
            return
        times = self._detection.buffer.between(int(cuts.closers.min()), int(cuts.closers.max()) + 1)
        owners = np.array([self._runs[owner] for owner in dealt.closed_by.tolist()], np.int64)
        values = {
            "instance": owners,
            "number": cuts.closed,
            "start": dealt.closed_starts,
            "stop": cuts.stops,
            "closer": cuts.closers,
            "closed_at": times.times[cuts.closers - times.first],
        }
        self.emit(_in_layout(self.layouts_main, values), len(owners))

    def _change_degree(self) -> None:
        now_s = self._last_us / 1e6
        commands: tuple[Command, ...] = ()
        if self._detection.wanted != self._fleet.planned:
            self._fleet, commands = self._fleet.request(self._detection.wanted, now_s, 0.0)
        drained = [number for number in self._runs if not self._splitter.queue.holds(number)]
        self._fleet, more = self._fleet.advance(now_s, drained)
        for command in (*commands, *more):
            self._obey(command)
        self._detection.planned = self._fleet.planned
        self._detection.requested = self._fleet.requested
        self._detection.observed = self._fleet.observed
        if not self._detection.degrees_seen or self._detection.degrees_seen[-1] != self._fleet.observed:
            self._detection.degrees_seen.append(self._fleet.observed)

    def _obey(self, command: Command) -> None:
        """An operator that drains may work for a new instance too: its selections come one after the
        other."""
        number = command.instance
        if command.act is Act.REGISTER:
            if number not in self._runs:
                self._runs[number] = self._free.pop(0) if self._free else self._least_used()
            self._splitter.register(number)
        elif command.act is Act.UNREGISTER:
            self._splitter.unregister(number)
        elif command.act is Act.SHUT_DOWN and number in self._runs:
            operator = self._runs.pop(number)
            self._splitter.queue.forget(number)
            if operator not in self._runs.values():
                self._free.append(operator)

    def _least_used(self) -> int:
        active = {self._runs[number] for number in self._fleet.registered if number in self._runs}
        return next(operator for operator in range(self._detection.most) if operator not in active)

    def _acknowledge(self) -> None:
        done = self._detection.done
        numbers = [done.popleft() for _ in range(len(done))]
        if numbers:
            self._detection.buffer.discard(self._splitter.done_with(np.concatenate(numbers)))

    @property
    def layouts_main(self) -> Layout:
        return next(iter(self.layouts.values()))

    @property
    def state_bytes(self) -> int:
        return self._held.bytes + self._detection.buffer.bytes

    @property
    def open_windows(self) -> int:
        return self._splitter.predicates.open_selections


class InstanceOperator(Operator):
    """Works on the selections that are its own; rows of other instances pass it by."""

    def __init__(self, build: Build, detection: Detection, number: int) -> None:
        super().__init__(build)
        self._detection = detection
        self._number = number
        self._detector = detection.detector()
        layout = build.inputs[0]
        names = ("instance", "number", "start", "stop", "closer", "closed_at")
        self._places = [layout.data(name) for name in names]
        self._output = next(iter(build.outputs.values()))

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        owners, *others = (columns[place] for place in self._places)
        mine = start + np.flatnonzero(owners[start:stop] == self._number)
        for done in range(0, len(mine), _AT_ONCE):
            rows = mine[done : done + _AT_ONCE]
            self._work(*(column[rows] for column in others))
            if self.has_ready_rows and done + _AT_ONCE < len(mine):
                return int(rows[-1]) + 1 - start
        return stop - start

    def _work(self, numbers: Ints, starts: Ints, stops: Ints, closers: Ints, closed_at: Ints) -> None:
        buffer = self._detection.buffer
        found = work_on(self._detector, Assigned(numbers, starts, stops, closers), buffer)
        if len(found.numbers):
            first = int(found.positions.min())
            events = buffer.between(first, int(found.positions.max()) + 1)
            order = np.argsort(numbers)
            of = order[np.searchsorted(numbers, found.numbers, sorter=order)]
            values: dict[str, NDArray[Any]] = {
                "number": found.numbers,
                "closer": found.closers,
                "rank": np.arange(len(found.numbers)),  # matches of one selection come together
                "closed_at": closed_at[of],
            }
            for output in self._detection.outputs:
                at = found.positions[:, output.step] - first
                values[output.name] = np.asarray(events.columns[output.column])[at]
                if output.column + _NULL in events.columns:
                    values[output.name + _NULL] = np.asarray(events.columns[output.column + _NULL])[at]
            self.emit(_in_layout(self._output, values), len(found.numbers))
        self._detection.done.append(numbers)


class MergerOperator(Operator):
    """The merger as a step: it releases matches when every instance has passed the watermark."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        self._input = build.inputs[0]
        self._output = next(iter(build.outputs.values()))
        self._places = [self._input.data(name) for name in ("closed_at", "closer", "number", "rank")]
        self._merger = Merger()

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        copied = tuple(column[start:stop].copy() for column in columns)
        self._merger.add(Place(*(copied[place] for place in self._places)), copied)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        # every event before the watermark has been cut, and every instance has worked on what that closed
        sequence, columns = self._merger.release(watermark_us)
        if len(sequence):
            values = _named(self._input, columns, 0, len(sequence))
            values["sequence"] = values[ORDER] = sequence
            self.emit(_in_layout(self._output, values), len(sequence))

    @property
    def state_bytes(self) -> int:
        return self._merger.bytes


def _named(layout: Layout, columns: Columns, first: int, stop: int) -> dict[str, NDArray[Any]]:
    """Columns by name, masks of nulls beside them."""
    named: dict[str, NDArray[Any]] = {}
    for field in layout.fields:
        named[field.name] = columns[layout.data(field.name)][first:stop]
        nulls = layout.nulls(field.name)
        if nulls is not None:
            named[field.name + _NULL] = columns[nulls][first:stop]
    return named


def _in_layout(layout: Layout, values: dict[str, NDArray[Any]]) -> Columns:
    columns: list[NDArray[Any]] = []
    for field in layout.fields:
        columns.append(np.ascontiguousarray(values[field.name], field.dtype.numpy))
        if layout.nulls(field.name) is not None:
            columns.append(np.ascontiguousarray(values[field.name + _NULL], np.bool_))
    return tuple(columns)
