"""Who runs next: workers take planned turns one by one; when none is left, the policy plans anew."""

from __future__ import annotations

import time
from collections import deque
from threading import Condition, Lock

from penstock.engine.vertex import Vertex
from penstock.scheduling.policy import Policy, Snapshot, Turn

#: What it costs when one thread takes the interpreter lock from another, estimated from runs with one and two
#: workers on a virtual machine. Turns shorter than this gain nothing from a second worker.
_HAND_OVER_NS = 50_000
_ALONE_EPOCHS = 5  # how much longer the others sleep while one worker is better off alone


class Scheduler:
    """Shared by all workers. A worker without work sleeps: one that spins would hold the interpreter lock."""

    def __init__(self, vertices: list[Vertex], policy: Policy, turn_limit: int, epoch_us: int) -> None:
        self._vertices = vertices
        self._policy = policy
        self._state = policy.initial_state()
        self._turn_limit = turn_limit
        self._epoch_s = epoch_us / 1e6
        self._turns: deque[Turn] = deque()
        self._lock = Lock()
        self._wake = Condition(self._lock)
        self._sleeping = 0
        self._running = 0  # workers inside a turn
        self._alone = False  # the planned turns are so short that one worker should take them all
        self._stopped = False
        self.decision_ns = 0  # time spent on planning, for the metrics

    def next_turn(self) -> tuple[Vertex, int] | None:
        """The next operator to run, now held by the caller; None if nothing can run or it is not worth it."""
        with self._lock:
            if self._alone and self._running:
                return None
            turn = self._pop()
            if turn is None:
                self._plan()
                turn = self._pop()
            self._running += turn is not None
            return turn

    def finish(self, vertex: Vertex, now_ns: int) -> None:
        """Gives the operator back and wakes a sleeper if there is work for it."""
        for reader in vertex.readers:
            if reader.counters.ready_since_ns == 0:
                reader.counters.ready_since_ns = now_ns
        if vertex.source is None and vertex.waiting():
            vertex.counters.ready_since_ns = now_ns
        vertex.running = False
        with self._wake:
            self._running -= 1
            if self._sleeping and not self._alone:
                self._wake.notify()

    def sleep(self) -> None:
        """Waits for someone to finish a turn, for an epoch at the most."""
        with self._wake:
            if self._stopped:
                return
            self._sleeping += 1
            self._wake.wait(self._epoch_s * (_ALONE_EPOCHS if self._alone else 1))
            self._sleeping -= 1

    @property
    def stopped(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        """No more turns: everyone wakes up and finds nothing."""
        with self._wake:
            self._stopped = True
            self._turns.clear()
            self._wake.notify_all()

    def _pop(self) -> tuple[Vertex, int] | None:
        turns = self._turns
        while turns:
            operator, limit = turns.popleft()
            vertex = self._vertices[operator]
            if vertex.work(0 if vertex.source is None else time.perf_counter_ns()):
                vertex.running = True
                return vertex, limit
        return None

    def _plan(self) -> None:
        if self._stopped:
            return
        began_ns = time.perf_counter_ns()
        pending = tuple([vertex.work(began_ns) for vertex in self._vertices])
        snapshot = Snapshot(began_ns, pending, self._turn_limit)
        turns, self._state = self._policy.plan(snapshot, self._state)
        self._turns.extend(turns)
        self._alone = self._is_better_alone(turns, pending)
        self.decision_ns += time.perf_counter_ns() - began_ns

    def _is_better_alone(self, turns: list[Turn], pending: tuple[int, ...]) -> bool:
        """Whether short turns would lose more by hand-overs than long ones gain by running together."""
        long_ns, short = 0.0, 0
        for operator, limit in turns:
            cost_ns = min(pending[operator], limit) * self._vertices[operator].counters.least_cost_ns
            if cost_ns < _HAND_OVER_NS:
                short += 1
            else:
                long_ns += cost_ns
        return long_ns < short * _HAND_OVER_NS
