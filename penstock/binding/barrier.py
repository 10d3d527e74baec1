"""Barrier installation: everybody stops, the tasks are moved, everybody goes on. The baseline that blocks."""

from __future__ import annotations

from enum import Enum, auto

from penstock.binding.installation import Installation
from penstock.binding.policy import Binding
from penstock.binding.tasks import IDLE, WAIT, Action, BlockTask, Rebind, ThreadStep


class BarrierPhase(Enum):
    RUNNING = auto()
    ARRIVING = auto()  # a binding is requested: threads come to the first barrier
    MOVING = auto()  # all are there and the owners are stored: threads move their tasks to the second


class Barrier(Installation):
    """Section III-C's simplest way: a flag, and two barriers with the moving of tasks between them.

    Misplaced tasks are forwarded here too: whoever is no thread of the installation and sends, such as one
    that frees memory, does not come to the barrier.
    """

    name = "barrier"

    def _prepare(self) -> None:
        self.phase = BarrierPhase.RUNNING
        self._there: set[int] = set()  # threads at the barrier of this phase
        self._requested_ns = 0
        self._is_outdated = False  # a request came while tasks were being moved

    def request(self, binding: Binding, now_ns: int) -> int:
        with self._guard:
            moves = sum(a != b for a, b in zip(binding, self.requested, strict=True))
            if moves == 0:
                return 0
            self.requested = list(binding)
            if self.phase is BarrierPhase.MOVING:
                self._is_outdated = True
            if self.phase is BarrierPhase.RUNNING:
                self._requested_ns = now_ns
                self._enter(BarrierPhase.ARRIVING)
        return moves

    def step(self, thread: int, now_ns: int) -> ThreadStep:
        if self.phase is not BarrierPhase.RUNNING:
            with self._guard:
                at_barrier = self._step_to_barrier(thread, now_ns)
            if at_barrier is not None:
                return at_barrier
        task = self.queues[thread].take()
        if task is None:
            return IDLE
        assert isinstance(task, BlockTask)
        if not self.may_run(thread, task.operator):
            return self._forward(thread, task)
        return self._receive(thread, task)

    def _step_to_barrier(self, thread: int, now_ns: int) -> ThreadStep | None:
        """Comes to the barrier of this phase; the last one there leads on to the next phase."""
        if self.phase is BarrierPhase.RUNNING:
            return None
        if thread in self._there:
            return WAIT
        if self.phase is BarrierPhase.ARRIVING:
            self._there.add(thread)
            if len(self._there) < self.threads:
                return WAIT
            self._store(thread, now_ns)
            self._enter(BarrierPhase.MOVING)
        self._move(thread)
        self._there.add(thread)
        if len(self._there) == self.threads:
            self._requested_ns = now_ns
            self._enter(BarrierPhase.ARRIVING if self._is_outdated else BarrierPhase.RUNNING)
            self._is_outdated = False
        return ThreadStep(Action.MOVE)

    def _store(self, thread: int, now_ns: int) -> None:
        for operator, owner in enumerate(self.requested):
            if owner != self.owners[operator]:
                self.owners[operator] = owner
                self._counters[thread].record_rebind(now_ns - self._requested_ns)

    def _move(self, thread: int) -> None:
        queue = self.queues[thread]
        tasks: list[BlockTask | Rebind] = []
        while (task := queue.take()) is not None:
            tasks.append(task)
        for task in tasks:
            to = self.owners[task.operator]
            self._counters[thread].forwarded += to != thread
            self.queues[to].put(task)

    def _enter(self, phase: BarrierPhase) -> None:
        self._there.clear()
        self.phase = phase
        for queue in self.queues:
            queue.wake()
