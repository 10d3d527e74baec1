"""A thread that runs the operators bound to it, from a queue of its own."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.binding.installation import Installation
from penstock.binding.tasks import Action, BlockTask
from penstock.engine.bound.queue import DispatchedInbox
from penstock.engine.bound.readiness import Readiness
from penstock.engine.turns.turn import guarded_turn
from penstock.engine.turns.vertex import Vertex

_SHORTEST_SLEEP_NS = 100_000  # a source that is due at once but has nothing must not keep its thread spinning
_LONGEST_SLEEP_NS = 50_000_000  # of a source that says when it is due: it may be told to stop before

_clock = time.perf_counter_ns


class BoundWorker:
    """Steps through the installation as one of its threads; never spins.

    A source without events is kept in hand, with its task, and looked at again when it is due. All other
    operators are told when they have something to do.
    """

    def __init__(
        self,
        number: int,
        vertices: list[Vertex],
        installation: Installation,
        readiness: Readiness,
        *,
        poll_us: int,
        after_turn: Callable[[Vertex], None],
    ) -> None:
        self.number = number
        self._vertices = vertices
        self._installation = installation
        self._readiness = readiness
        self._poll_ns = poll_us * 1_000
        self._after_turn = after_turn
        inbox = installation.queues[number]
        assert isinstance(inbox, DispatchedInbox)
        self._inbox = inbox
        self._quiet: list[Vertex] = []  # sources without events
        self._due_ns = 0  # when to look at them again
        self._is_over = False

    def run(self) -> None:
        """Works until told to leave."""
        installation, number, inbox = self._installation, self.number, self._inbox
        while not self._is_over:
            seen = inbox.wakings
            now_ns = _clock()
            if self._quiet and now_ns >= self._due_ns:
                self._look_at_quiet(now_ns)
            step = installation.step(number, now_ns)
            match step.action:
                case Action.PROCESS:
                    assert isinstance(step.task, BlockTask)
                    self._process(step.task, now_ns)
                case Action.IDLE:
                    self._sleep(seen)
                case Action.WAIT:
                    if not self._is_over:
                        inbox.sleep(seen, for_task=False)
                    installation.waited(number, _clock() - now_ns)
                case Action.REBIND | Action.MOVE:
                    self._due_ns = 0  # a quiet source may be another's now

    def leave(self) -> None:
        """Makes ``run`` return after the turn under way; called by any thread."""
        self._is_over = True
        self._inbox.wake()

    def look_at_sources(self) -> None:
        """Makes it look at its quiet sources soon; called by any thread."""
        self._due_ns = 0
        self._inbox.wake()

    def _process(self, task: BlockTask, now_ns: int) -> None:
        vertex = self._vertices[task.operator]
        if vertex.source is not None and not vertex.blocked and not vertex.work(now_ns):
            self._installation.finish(self.number, task, now_ns)
            self._quiet.append(vertex)
            self._due_ns = 0
            return
        ended_ns = now_ns
        if vertex.work(now_ns):
            ended_ns = self._take_turn(vertex, now_ns)
        self._installation.finish(self.number, task, ended_ns)
        if not vertex.finished:  # else its flag stays taken: no task of it is sent any more
            self._readiness.end_task(vertex, ended_ns)

    def _take_turn(self, vertex: Vertex, began_ns: int) -> int:
        assert not vertex.running, f"two threads are inside '{vertex.operator.id}'"
        ready_since_ns = self._readiness.begin_turn(vertex)
        vertex.running = True
        taken = guarded_turn(vertex, self._inbox.limits[vertex.index])
        ended_ns = _clock()
        vertex.counters.record_turn(began_ns, ended_ns, taken, ready_since_ns)
        vertex.running = False
        self._readiness.tell_readers(vertex)
        self._after_turn(vertex)
        return ended_ns

    def _look_at_quiet(self, now_ns: int) -> None:
        """Sends the tasks of sources that have events again or that are bound to another thread by now."""
        still: list[Vertex] = []
        due_ns = now_ns + _LONGEST_SLEEP_NS
        for vertex in self._quiet:
            assert vertex.source is not None
            if vertex.work(now_ns) or not self._installation.may_run(self.number, vertex.index):
                self._readiness.pass_on(vertex)
                continue
            still.append(vertex)
            next_ns = vertex.source.next_due_ns()
            due_ns = min(due_ns, now_ns + self._poll_ns if next_ns is None else next_ns)
        self._quiet = still
        self._due_ns = max(due_ns, now_ns + _SHORTEST_SLEEP_NS)

    def _sleep(self, seen: int) -> None:
        if self._is_over:
            return
        pause_s = self._inbox.pause_s
        if self._quiet:
            due_s = (self._due_ns - _clock()) / 1e9
            pause_s = due_s if pause_s is None else min(due_s, pause_s)
        if pause_s is None or pause_s > 0.0:
            self._inbox.sleep(seen, pause_s)
