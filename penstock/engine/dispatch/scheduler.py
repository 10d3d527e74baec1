"""The scheduler: the dispatcher with a lock, a clock and workers that sleep.

The loop of enjima's algorithm 2. A worker gives back the operators that it has run and takes the next ones,
all under the lock. When a plan is due, whoever comes by makes it. A worker that is given nothing sleeps until
something is due, or until a turn ends that gave somebody work.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from threading import Event, Lock

from penstock.engine.dispatch.desk import Desk, Turns
from penstock.engine.dispatch.sleepers import Seat, Sleepers, wait
from penstock.engine.turns.vertex import Vertex
from penstock.scheduling.consumption import Consumption
from penstock.scheduling.dispatch.board import MOST_TURNS
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.policy import Policy

_LONGEST_SLEEP_NS = 50_000_000  # while nothing happens
_POLL_EPOCHS = 4  # how often the scheduler's thread looks while somebody sleeps whom only it can wake
_TIMED = 8  # every so many-th decision is timed
_NOBODY: frozenset[Vertex] = frozenset()


class Scheduler:
    """Shared by all workers. A worker without work sleeps: one that spins would hold the interpreter lock.

    Everything here happens under the lock, except that operators are noted as freed by whoever freed their
    memory.
    """

    def __init__(
        self,
        vertices: list[Vertex],
        policy: Policy,
        turn_limit: int,
        epoch_us: int,
        consumption: Consumption | None = None,
        workers: int = 1,
        rules: Rules | None = None,
        *,
        by_least: bool = True,
    ) -> None:
        """``by_least``: as of an ``Observation``."""
        self._epoch_ns = epoch_ns = epoch_us * 1_000
        self.desk = desk = Desk(
            vertices, policy, turn_limit, epoch_ns, workers, consumption, rules, by_least=by_least
        )
        self._head, self._dispatcher = desk.head, desk.dispatcher
        self._lock = Lock()
        self._sleepers = Sleepers(desk.head)
        self._next_look_ns = 0  # of the scheduler's thread
        self._nudge = Event()  # wakes that thread
        self._stopped = False
        self.decisions = 0
        self._clock_ns = _cost_of_clock_ns()
        # What the processor has spent on picking operators and taking them back, by samples.
        self.decision_ns = 0
        self.planning_ns = 0  # and on plans
        for vertex in vertices:
            vertex.on_unblock = self._note_freed
            vertex.on_call = self._note_called

    # -- for workers -----------------------------------------------------------------------------

    def next_turns(self, most: int = MOST_TURNS) -> Turns:
        """The next operators to run, in this order, now held by the caller, with the limits of their turns;
        empty if nothing can run or it is not worth it."""
        return self.exchange([], _NOBODY, 0, most)

    def exchange(
        self, vertices: Sequence[Vertex], stopped: AbstractSet[Vertex], ended_ns: int, most: int = MOST_TURNS
    ) -> Turns:
        """Gives back operators whose turns have ended and takes the next. ``stopped``: those whose turns
        something ended before they had taken all there was."""
        with self._lock:
            self.decisions += 1
            if self.decisions % _TIMED:
                return self._exchange(vertices, stopped, ended_ns, most)
            return self._timed_exchange(vertices, stopped, ended_ns, most)

    def stays(self, source: Vertex) -> bool:
        """Whether a source that has more can go on without a decision."""
        return not self._stopped and self.desk.stays(source)

    def sleep(self, seat: Seat) -> Turns:
        """Waits until there may be a turn to take or the run is over; the turns, as ``next_turns``."""
        with self._lock:
            if self._stopped:
                return []
            waits = self._waits_for_other
            # What came after the worker was given nothing found nobody to wake.
            is_needed = not waits and (self._head.waiting > 0 or self.desk.is_behind)
            if not is_needed:
                now_ns = time.perf_counter_ns()
                due_ns = now_ns + self._until_due_ns(now_ns)
                watches = self._sleepers.add(seat, None if waits else due_ns)
                if self._sleepers.unwatched and self._next_look_ns > now_ns + _POLL_EPOCHS * self._epoch_ns:
                    self._nudge.set()  # from now on the scheduler's thread has someone to wake
        if not is_needed:
            wait(seat, due_ns - now_ns if watches else None)
            with self._lock:
                self._sleepers.remove(seat)
        return self.next_turns()

    @property
    def stopped(self) -> bool:
        """Whether there will be no more turns: all have finished, or someone has stopped the run."""
        return self._stopped

    def stop(self) -> None:
        """No more turns: everyone wakes up and finds nothing."""
        with self._lock:
            self._stopped = True
            self._sleepers.wake_all()
        self._nudge.set()

    # -- for the scheduler's thread --------------------------------------------------------------

    def begin_epoch(self) -> None:
        """Begins the epoch that is due, unless a worker has done so, and wakes whoever is needed."""
        with self._lock:
            if self._stopped:
                return
            now_ns = time.perf_counter_ns()
            if now_ns >= self._dispatcher.plan_due_ns:
                self._begin_epoch(now_ns)
            else:
                self._dispatcher.exchange(0, now_ns, 0)
            needed = min(self._head.waiting, 1 if self._head.alone else self._head.sleeping)
            if needed and not self._waits_for_other:
                self._sleepers.wake(needed)

    def await_epoch(self) -> None:
        """Sleeps until the scheduler's thread is needed. While workers run, they begin epochs themselves, and
        of those that sleep one knows when the next thing is due."""
        with self._lock:
            if self._stopped:
                return
            now_ns = time.perf_counter_ns()
            pause_ns = _LONGEST_SLEEP_NS
            if self._sleepers.unwatched:
                pause_ns = max(_POLL_EPOCHS * self._epoch_ns, self._until_due_ns(now_ns))
            self._next_look_ns = now_ns + pause_ns
        if self._nudge.wait(pause_ns / 1e9):
            self._nudge.clear()

    def look_at_sources(self) -> None:
        """Something has happened to the sources: the next epoch looks at each of them."""
        with self._lock:
            self.desk.ask_all()
        self._nudge.set()

    def open_wait_ns(self, vertex: Vertex, now_ns: int) -> int:
        """How long an operator has had work and no turn, now."""
        row = self.desk.rows[vertex.index]
        return max(0, now_ns - row.since_ns) if row.since_ns and not row.running else 0

    def _note_freed(self, vertex: Vertex) -> None:
        """Memory was freed for an operator, in the middle of another's turn or by the allocator."""
        self.desk.freed.append(vertex)
        if self._head.sleeping and not self._head.alone:
            with self._lock:
                self._sleepers.wake()

    def _note_called(self, vertex: Vertex) -> None:
        """Something has come for an operator on none of its edges, in the middle of another's turn."""
        with self._lock:
            self.desk.called.add(vertex)
            self._sleepers.wake()
        self._nudge.set()

    # -- within the lock -------------------------------------------------------------------------

    def _until_due_ns(self, now_ns: int) -> int:
        """How long nothing has to be done unless someone says so."""
        if self.desk.asks:
            return self._epoch_ns
        return max(0, min(self._dispatcher.wake_ns(now_ns) - now_ns, _LONGEST_SLEEP_NS))

    def _timed_exchange(
        self, vertices: Sequence[Vertex], stopped: AbstractSet[Vertex], ended_ns: int, most: int
    ) -> Turns:
        clock, planned_ns = time.thread_time_ns, self.planning_ns
        clock()  # a look at the processor's time takes longest after a turn, and that is not the decision's
        began_ns = clock()
        turns = self._exchange(vertices, stopped, ended_ns, most)
        took_ns = clock() - began_ns - self._clock_ns - (self.planning_ns - planned_ns)
        self.decision_ns += max(0, took_ns) * _TIMED
        return turns

    def _exchange(
        self, vertices: Sequence[Vertex], stopped: AbstractSet[Vertex], ended_ns: int, most: int
    ) -> Turns:
        now_ns, desk, head = ended_ns or time.perf_counter_ns(), self.desk, self._head
        is_plan_due = now_ns >= self._dispatcher.plan_due_ns
        if self._stopped or is_plan_due or desk.freed or desk.called:
            desk.exchange(vertices, stopped, now_ns, 0)
            if self._stopped or (self._waits_for_other and desk.unfinished):
                return []
            desk.catch_up(now_ns)
            if is_plan_due:
                self._begin_epoch(now_ns)
            vertices, stopped = (), _NOBODY
        turns = desk.exchange(vertices, stopped, now_ns, most)
        if not desk.unfinished:
            self._stopped = True
            self._sleepers.wake_all()
            return []
        if head.sleeping and head.waiting and not head.alone:
            self._sleepers.wake()
        return turns

    @property
    def _waits_for_other(self) -> bool:
        """Whether nobody is given anything before the one worker that takes the short turns comes back."""
        return bool(self._head.alone and self._head.held)

    def _begin_epoch(self, now_ns: int) -> None:
        began_ns = time.thread_time_ns()
        self.desk.begin_epoch(now_ns)
        took_ns = time.thread_time_ns() - began_ns
        self._dispatcher.await_plan(now_ns, took_ns)
        self.planning_ns += took_ns


def _cost_of_clock_ns() -> int:
    """What two looks at the processor's time cost at the least: more than some decisions."""
    clock = time.thread_time_ns
    return min(-(clock() - clock()) for _ in range(100))
