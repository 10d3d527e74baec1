"""A part of a graph that runs in the calling thread, batch by batch: what a Spark task runs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.engine.dispatch.desk import Desk, Turns
from penstock.engine.turns.source import Partition, SourceOperator
from penstock.engine.turns.turn import guarded_turn
from penstock.engine.turns.vertex import Vertex
from penstock.memory.edges import START_OF_TIME, End, Mark, Outlet, Watermark
from penstock.memory.layout import Columns
from penstock.operators.run.base import Operator
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.min_cost import MinCost
from penstock.scheduling.policy import Policy

_EPOCH_NS = 1_000_000  # how long a turn should take, for policies that care
_LONG_NS = 1_000_000_000  # after which everybody has waited for long enough


class Inlet(Operator):
    """Where events come in that another process made: it has no input, only an outlet that is fed."""

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        raise TypeError("an inlet has no input")

    @property
    def outlet(self) -> Outlet:
        assert self.out is not None
        return self.out


class BatchSource(SourceOperator):
    """Reads the ranges of one batch; that they end says nothing about the stream, so it sends no marks."""

    def begin(self, partitions: list[Partition]) -> None:
        """Takes over these partitions, from where they stand. Its vertex must not be finished."""
        self._partitions = partitions
        self._next = 0
        self._next_marker_ns = 1 << 62  # latency is measured by batch
        self.finished = False

    def _advance(self, outbox: deque[Mark]) -> None:
        return

    def _finish(self, outbox: deque[Mark], *, complete: bool) -> int:
        self.finished = True
        return 0


class InlineEngine:
    """Vertices in topological order, run until nothing is left to do.

    The same dispatcher as on a node, without threads. ``policy`` orders the turns; without one they go from
    the sources to the sinks, round after round: nobody waits for results before the batch ends, so that is
    the fastest. Nobody comes by later either, so nothing is put off: where a turn would be worth it only
    after some time, that time is taken to have passed.
    """

    def __init__(
        self,
        vertices: Sequence[Vertex],
        turn_limit: int,
        policy: Policy | None = None,
        *,
        passes: bool = True,
    ) -> None:
        self.vertices = list(vertices)
        self._turn_limit = turn_limit
        # Nothing comes while a batch runs, and there is one worker, who takes rounds of turns.
        rules = replace(Rules.none(), passes=passes, alone=True)
        self._desk = Desk(self.vertices, policy or MinCost(), turn_limit, _EPOCH_NS, 1, None, rules)
        self._now_ns = 0

    def run(self) -> None:
        """Takes turns until every operator has done what it can."""
        desk = self._desk
        dispatcher, head = desk.dispatcher, desk.head
        self._now_ns = max(self._now_ns, time.perf_counter_ns())
        for vertex in self.vertices:
            self._look_at(vertex)
        stopped: set[Vertex] = set()
        turns: Turns = []
        while True:
            if self._now_ns >= dispatcher.plan_due_ns:
                desk.begin_epoch(self._now_ns)
                dispatcher.await_plan(self._now_ns, _EPOCH_NS)
            turns = desk.exchange([vertex for vertex, _ in turns], stopped, self._now_ns)
            if desk.freed:
                desk.catch_up(self._now_ns)
                turns = turns or desk.exchange((), set(), self._now_ns)
            if turns:
                stopped, ended_ns = desk.run(turns, _never, time.perf_counter_ns())
                self._now_ns = max(self._now_ns, ended_ns)
            elif head.put_off:
                self._now_ns += _LONG_NS
            elif not any(self._look_at(vertex) for vertex in self.vertices if vertex.source is not None):
                return

    def _look_at(self, vertex: Vertex) -> bool:
        """Tells the dispatcher what waits for a vertex, wherever it came from; whether it may run."""
        row, dispatcher = self._desk.rows[vertex.index], self._desk.dispatcher
        if vertex.finished or vertex.blocked:
            dispatcher.hold(vertex.index)
            return False
        pending = vertex.waiting() if vertex.source is None else 1
        if pending or row.pending or row.blocked:
            dispatcher.release(vertex.index, pending, self._now_ns)
        return pending > 0

    def read(self, source: Vertex) -> None:
        """Lets a source read all that its batch has. What it read last still waits for ``run``, so that
        operators can take it in one turn with the watermark that follows."""
        while not source.finished:
            self._turn(source, self._turn_limit)
            if not source.finished:
                self.run()

    def feed(self, outlet: Outlet, columns: Columns, count: int) -> None:
        """Writes events into an inlet's outlet, and lets the others work whenever it is full."""
        start = 0
        while start < count:
            room = min(outlet.reserve(), count - start)
            if room == 0:
                self.run()
                continue
            position = outlet.position
            for target, source in zip(outlet.columns, columns, strict=True):
                target[position : position + room] = source[start : start + room]
            outlet.commit(room)
            start += room

    def advance(self, outlets: Iterable[tuple[Outlet, int]]) -> None:
        """Tells each of these outlets' readers how far time has come."""
        for outlet, watermark_us in outlets:
            if watermark_us != START_OF_TIME:
                outlet.mark(Watermark(watermark_us))
        self.run()

    def end(self, outlets: Iterable[Outlet]) -> None:
        """The input is complete: everything closes. The vertices cannot be used again."""
        for outlet in outlets:
            outlet.mark(End(True))
        self.run()

    def reset(self) -> None:
        """As if newly built: no state, no watermark."""
        for vertex in self.vertices:
            vertex.operator.reset()
            vertex.watermark = START_OF_TIME
            for edge in vertex.edges:
                edge.watermark = START_OF_TIME

    def _turn(self, vertex: Vertex, limit: int) -> None:
        began_ns = time.perf_counter_ns()
        taken = guarded_turn(vertex, limit)
        vertex.counters.record_turn(began_ns, time.perf_counter_ns(), taken)


def _never(source: Vertex) -> bool:
    return False
