"""A part of a graph that runs in the calling thread, batch by batch: what a Spark task runs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence

from penstock.engine.ordered_turns import OrderedTurns
from penstock.engine.source import Partition, SourceOperator
from penstock.engine.turn import guarded_turn
from penstock.engine.vertex import Vertex
from penstock.memory.edges import START_OF_TIME, End, Mark, Outlet, Watermark
from penstock.memory.layout import Columns
from penstock.operators.run.base import Operator
from penstock.scheduling.min_cost import MinCost
from penstock.scheduling.policy import Policy


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

    The same turns as on a node, without threads: an operator that finds its outlet full is tried again when
    its readers have had their turn. ``policy`` orders the turns. Without one, and with that of minimum cost,
    which comes to the same, they go from the sources to the sinks, round after round: nobody waits for
    results before the batch ends, so that is the fastest, and it decides nothing.
    """

    def __init__(self, vertices: Sequence[Vertex], turn_limit: int, policy: Policy | None = None) -> None:
        self.vertices = list(vertices)
        self._turn_limit = turn_limit
        self._ordered = None
        if policy is not None and not isinstance(policy, MinCost):
            self._ordered = OrderedTurns(self.vertices, policy, turn_limit)

    def run(self) -> None:
        """Takes turns until every operator has done what it can."""
        if self._ordered is not None:
            while self._ordered.take_round(self._turn):
                pass
            return
        moved = True
        while moved:
            moved = False
            for vertex in self.vertices:
                if vertex.finished or vertex.blocked:
                    continue
                if vertex.source is not None or vertex.waiting():
                    self._turn(vertex, self._turn_limit)
                    moved = True

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
