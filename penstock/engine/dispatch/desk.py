"""The desk: where vertices and their dispatcher meet. What vertices did becomes events, instructions become
turns."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from penstock.engine.dispatch.observation import VertexCounts, observation_of, topology_of
from penstock.engine.turns.turn import guarded_turn
from penstock.engine.turns.vertex import Vertex
from penstock.scheduling.consumption import Consumption
from penstock.scheduling.dispatch.board import MOST_TURNS, NEVER_NS
from penstock.scheduling.dispatch.dispatcher import Dispatcher
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.policy import Policy

_FEW = 8  # readers that are looked at one by one

Turns = list[tuple[Vertex, int]]  # what to run, in this order, each with the most events that it may take


class Desk:
    """Not thread-safe, but for ``freed``, which is appended to by whoever frees memory."""

    def __init__(
        self,
        vertices: list[Vertex],
        policy: Policy,
        turn_limit: int,
        epoch_ns: int,
        workers: int,
        consumption: Consumption | None = None,
        rules: Rules | None = None,
        *,
        by_least: bool = True,
    ) -> None:
        self.vertices = vertices
        rules, topology = rules or Rules(), topology_of(vertices)
        self.dispatcher = Dispatcher(topology, policy, turn_limit, epoch_ns, workers, rules, consumption)
        board = self.dispatcher.board
        self.head, self.rows = board.head, board.operators
        self._given, self._returned = board.given, board.returned
        self._behind: list[Turns] = [[(vertices[i], turn_limit) for i in behind] for behind in board.behind]
        self._readers = [[vertices[i] for i in readers] for readers in board.readers]
        self._sent = [0] * len(vertices)  # events and marks, by those with many readers
        self._bounded = rules.bounded
        self._counts = VertexCounts(vertices)
        self.seen = observation_of(vertices, topology, workers, by_least=by_least)
        self.unfinished = {vertex.index for vertex in vertices if not vertex.finished}
        self._asked = {vertex for vertex in vertices if vertex.source is not None}  # at every epoch
        self.freed: deque[Vertex] = deque()  # there is room again for what they send
        self.called: set[Vertex] = set()  # something has come for them on none of their edges
        for vertex in vertices:
            vertex.on_unblock = self.freed.append

    # -- events ----------------------------------------------------------------------------------

    def exchange(
        self, vertices: Sequence[Vertex], stopped: AbstractSet[Vertex], now_ns: int, most: int = MOST_TURNS
    ) -> Turns:
        """Gives back what a worker has run and takes the next turns. ``stopped``: those whose turns something
        ended before they had taken all there was."""
        returned = self._report(vertices, stopped) if vertices else 0
        turns: Turns = []
        for place in range(self.dispatcher.exchange(returned, now_ns, most)):
            turn = self._given[place]
            operator = turn.operator
            turns.append((self.vertices[operator], turn.limit))
            if turn.leads:
                behind, rows = self._behind[operator], self.rows
                turns += [(v, rows[v.index].allowed) for v, _ in behind] if self._bounded else behind
        return turns

    def catch_up(self, now_ns: int) -> None:
        """Tells what has happened beside the turns."""
        while self.freed:
            vertex = self.freed.popleft()
            row = self.rows[vertex.index]
            if not (row.running or vertex.blocked or vertex.finished):
                pending = vertex.waiting() if vertex.source is None else max(1, row.pending)
                self.dispatcher.release(vertex.index, pending, now_ns)
        # One that a worker has stays called: it may have had its turn, and only those come back with what
        # waits for them whose turns something ended.
        for vertex in [one for one in self.called if not self.rows[one.index].running]:
            self.called.discard(vertex)
            if not vertex.finished:
                self.dispatcher.tell(vertex.index, vertex.waiting(), now_ns)

    @property
    def is_behind(self) -> bool:
        """Whether there is something to catch up with for operators that nobody has."""
        rows = self.rows
        called = any(not (rows[vertex.index].running or vertex.blocked) for vertex in self.called)
        return bool(self.freed) or called

    def begin_epoch(self, now_ns: int) -> None:
        """Looks at what operators cost and send, asks the sources that cannot tell when they have more, and
        makes a plan."""
        if self.seen.is_due(now_ns):
            self.seen.update(now_ns, self._counts.read())
        for vertex in list(self._asked):
            row = self.rows[vertex.index]
            if vertex.finished:
                self._asked.discard(vertex)
            elif not (row.running or row.blocked or row.priority > 0.0):
                self._ask(vertex, now_ns)
        self.dispatcher.plan(now_ns, self.seen)

    def ask_all(self) -> None:
        """Something has happened to the sources: the next epoch asks each of them."""
        self._asked = {vertex for vertex in self.vertices if vertex.source and not vertex.finished}
        self.dispatcher.plan_due_ns = 0

    # -- for whoever runs turns ------------------------------------------------------------------

    def run(self, turns: Turns, stays: Callable[[Vertex], bool], ended_ns: int) -> tuple[set[Vertex], int]:
        """Runs turns that were given out, without a lock; those that something ended before they had taken
        all there was, and when the last one ended."""
        clock, stopped = time.perf_counter_ns, set()
        for vertex, limit in turns:
            source = vertex.source
            if source is None:
                waiting = vertex.waiting()
                if not waiting:
                    continue  # held for what the one before would send, which was nothing
                if self._bounded and not self._is_worth(vertex, waiting, ended_ns):
                    stopped.add(vertex)
                    continue
            since_ns, began_ns = self.rows[vertex.index].since_ns, ended_ns
            taken = guarded_turn(vertex, limit)
            ended_ns = clock()
            vertex.counters.record_turn(began_ns, ended_ns, taken, since_ns)
            while source is not None and taken >= limit and stays(vertex):
                began_ns = ended_ns
                taken = guarded_turn(vertex, limit)
                ended_ns = clock()
                vertex.counters.record_turn(began_ns, ended_ns, taken, 0)
            if source is not None:
                # A full outlet says nothing of what there is: by the time it is given back there may be room
                # again.
                source.has_more = taken >= limit or source.is_full
                if not taken or vertex.blocked or vertex.finished or vertex.outbox:
                    stopped.add(vertex)
            elif vertex.blocked or vertex.finished or vertex.waiting():
                stopped.add(vertex)
        return stopped, ended_ns

    def stays(self, source: Vertex) -> bool:
        """Whether a source that has more can go on without a decision."""
        return not (source.blocked or source.finished) and self.dispatcher.stays(source.index)

    @property
    def asks(self) -> bool:
        """Whether there are sources that have to be asked at every epoch."""
        return bool(self._asked)

    def _is_worth(self, vertex: Vertex, waiting: int, now_ns: int) -> bool:
        """Whether an operator that came along is worth a turn; who was given out for itself is."""
        comes_along = self.rows[vertex.index].allowed > 0
        return not comes_along or self.dispatcher.is_worth(vertex.index, waiting, now_ns)

    # -- what vertices say -----------------------------------------------------------------------

    def _report(self, vertices: Sequence[Vertex], stopped: AbstractSet[Vertex]) -> int:
        """Writes down who comes back with what; how many operators that come alone or lead."""
        rows, returned = self.rows, 0
        for vertex in stopped:
            row = rows[vertex.index]
            row.blocked, row.finished, row.seen = vertex.blocked, vertex.finished, vertex.waiting()
            if vertex.finished:
                self.unfinished.discard(vertex.index)
        place, count = 0, len(vertices)
        while place < count:
            vertex = vertices[place]
            index, source = vertex.index, vertex.source
            row = rows[index]
            self._returned[returned] = index
            returned += 1
            if source is None:
                row.seen = vertex.waiting()
            else:
                row.seen = row.limit if source.has_more else 0
                if not (source.has_more or row.steady):
                    row.due_ns = self._due_ns(vertex)
            place += 1
            if row.leading:
                place += len(self._behind[index])
            elif len(self._readers[index]) > _FEW:
                self._report_sent(vertex)
            else:
                for reader in self._readers[index]:
                    rows[reader.index].seen = reader.waiting()
        return returned

    def _report_sent(self, vertex: Vertex) -> None:
        """Of many readers, each gets what was sent, without a look at it. What a reader took while it was
        sent counts twice until its next turn."""
        sent = sum(outlet.written + outlet.marked for outlet in vertex.outlets)
        new, self._sent[vertex.index] = sent - self._sent[vertex.index], sent
        if new:
            for reader in self._readers[vertex.index]:
                row = self.rows[reader.index]
                row.seen = row.pending + new

    def _ask(self, vertex: Vertex, now_ns: int) -> None:
        """What a source has, or when it will have something. It is asked again if it cannot tell."""
        assert vertex.source is not None
        pending = vertex.source.available(now_ns)
        if pending:
            self.dispatcher.tell(vertex.index, pending, now_ns)
        due_ns = self._due_ns(vertex)
        if due_ns != NEVER_NS:
            self._asked.discard(vertex)
            self.dispatcher.expect(vertex.index, due_ns, now_ns)

    def _due_ns(self, vertex: Vertex) -> int:
        """When a source has its next event; a source that cannot tell is asked at every epoch."""
        assert vertex.source is not None
        due_ns = vertex.source.next_due_ns()
        if due_ns is None:
            self._asked.add(vertex)
            return NEVER_NS
        return due_ns
