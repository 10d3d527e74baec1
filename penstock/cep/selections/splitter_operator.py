"""The splitter as an operator: puts events in order, cuts selections, and has as many instances as asked
for."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from penstock.cep.event_columns import EventColumns, kept, text_names
from penstock.cep.selections.assignment import Assignment
from penstock.cep.selections.instances import Assigned, EventBuffer
from penstock.cep.selections.selections import EventBatch, Ints
from penstock.cep.selections.splitter import DealtSelections, SelectionSplitter
from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import Columns
from penstock.metrics.degree import DegreeMetrics
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.ordered_buffer import OrderedBuffer
from penstock.query.graph import Port
from penstock.query.steps import DetectSpec
from penstock.scaling.adaptation import Act, Command, Fleet


class SplitterOperator(Operator):
    """What splitters have in common, however selections go to their instances.

    An instance of the fleet has a place, one of ``most``: an operator on the node, a key on Spark.
    """

    def __init__(self, build: Build, spec: DetectSpec) -> None:
        super().__init__(build)
        layout = build.inputs[0]
        assert layout.time is not None
        self._spec = spec
        self._time = layout.data(layout.time)
        self._texts = text_names(layout)
        self._output = build.outputs[Port.MAIN]
        self._held = OrderedBuffer(layout)
        self._begin()

    def _begin(self) -> None:
        spec, degree = self._spec, self._spec.degree
        self._splitter = SelectionSplitter(
            spec.selections(), Assignment(spec.assignment), acknowledges_selections=True
        )
        self._fleet = Fleet.of(degree.start)
        self._places = {number: number for number in range(degree.start)}  # of the fleet's instances
        for number in range(degree.start):
            self._splitter.register(number)
        self._changes = list(degree.changes)
        self._control = None if degree.control is None else degree.control()
        self._planned = self._wanted = degree.start
        self._buffer = EventBuffer()
        self._stop = 0  # events cut so far
        self._last_us = 0
        self._closed: list[tuple[DealtSelections, Ints]] = []  # with the places of their instances
        self.degrees_seen = [degree.start]

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self.divert_late(index, columns, start, stop)
        self._held.add(columns, start, stop)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        self._acknowledge()
        columns, count = self._held.release(watermark_us)
        first = 0
        while first < count:  # a change of degree falls between two events
            upto = count
            while self._changes and self._changes[0][0] <= self._stop:
                self._request(self._changes.pop(0)[1])
            if self._changes:
                upto = min(count, first + self._changes[0][0] - self._stop)
            self._change_degree()
            self._split(columns, first, upto)
            first = upto
        if watermark_us == END_OF_TIME:
            self._take(self._splitter.finish())
        if self._closed:
            self._send_closed()
        self._buffer.discard(self._splitter.queue.discard())  # what nobody holds is not needed again

    @abstractmethod
    def _send(self, assigned: Assigned, places: Ints, closed_at: Ints) -> None:
        """Sends selections that have closed, in closing order, to the places of their instances."""

    def _acknowledge(self) -> None:
        """Hears which selections instances are done with."""

    def _split(self, columns: Columns, first: int, stop: int) -> None:
        rows = slice(first, stop)
        batch = EventBatch(self._stop, columns[self._time][rows], kept(self.inputs[0], columns, rows))
        shown = EventBatch(batch.first, batch.times, EventColumns(batch.columns, self._texts, self.strings))
        self._stop = batch.stop
        self._last_us = int(batch.times[-1])
        self._buffer.add(batch)
        self._take(self._splitter.split(shown))
        if self._control is not None and (wanted := self._control.observe(shown)) is not None:
            self._request(wanted)

    def _take(self, dealt: DealtSelections) -> None:
        if len(dealt.cuts.closed):
            places = [self._places[owner] for owner in dealt.closed_by.tolist()]
            self._closed.append((dealt, np.array(places, np.int64)))

    def _send_closed(self) -> None:
        """All that has closed goes at once, so that an event of several selections goes once."""
        closed, self._closed = self._closed, []
        cuts = [dealt.cuts for dealt, _ in closed]
        assigned = Assigned(
            np.concatenate([one.closed for one in cuts]),
            np.concatenate([dealt.closed_starts for dealt, _ in closed]),
            np.concatenate([one.stops for one in cuts]),
            np.concatenate([one.closers for one in cuts]),
        )
        closers = assigned.closers
        events = self._buffer.between(int(closers.min()), int(closers.max()) + 1)
        self._send(
            assigned, np.concatenate([places for _, places in closed]), events.times[closers - events.first]
        )

    # -- the degree ------------------------------------------------------------------------------------------

    def _request(self, degree: int) -> None:
        self._planned = degree
        self._wanted = max(1, min(degree, self._spec.degree.most))

    def _change_degree(self) -> None:
        now_s = self._last_us / 1e6
        commands: tuple[Command, ...] = ()
        if self._wanted != self._fleet.planned:
            self._fleet, commands = self._fleet.request(self._wanted, now_s, 0.0)
        drained = [number for number in self._places if not self._splitter.queue.holds(number)]
        self._fleet, more = self._fleet.advance(now_s, drained)
        for command in (*commands, *more):
            self._obey(command)
        if self.degrees_seen[-1] != self._fleet.observed:
            self.degrees_seen.append(self._fleet.observed)

    def _obey(self, command: Command) -> None:
        number = command.instance
        if command.act is Act.REGISTER:
            if number not in self._places:
                self._places[number] = self._free_place()
            self._splitter.register(number)
        elif command.act is Act.UNREGISTER:
            self._splitter.unregister(number)
        elif command.act is Act.SHUT_DOWN and number in self._places:
            del self._places[number]
            self._splitter.queue.forget(number)

    def _free_place(self) -> int:
        """One that nobody has, else one whose instance drains: its selections come one after the other."""
        places = range(self._spec.degree.most)
        taken = set(self._places.values())
        active = {self._places[number] for number in self._fleet.registered if number in self._places}
        return next(place for used in (taken, active) for place in places if place not in used)

    @property
    def degree(self) -> DegreeMetrics | None:
        """None before the first event: in most tasks there will never be one."""
        if not self._stop:
            return None
        fleet = self._fleet
        return DegreeMetrics(self._planned, fleet.requested, fleet.observed, self._spec.degree.most)

    def reset(self) -> None:
        super().reset()
        self._held.clear()
        self._begin()

    @property
    def state_bytes(self) -> int:
        return self._held.bytes + self._buffer.bytes

    @property
    def open_windows(self) -> int:
        return self._splitter.predicates.open_selections
