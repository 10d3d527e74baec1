"""One shared queue: no binding at all, every thread takes whatever comes first. A baseline."""

from __future__ import annotations

from collections.abc import Callable

from penstock.binding.installation import Installation
from penstock.binding.policy import Binding
from penstock.binding.tasks import IDLE, Action, BlockTask, TaskQueue, ThreadStep


class SharedQueue(Installation):
    """All tasks in one priority queue. A task whose operator is at work, or that is not due, is parked.

    The queue and the edges are everybody's, so every step and every finish goes through ``guard``: that is
    the concurrency cost of this design.
    """

    name = "shared_queue"

    def _prepare(self) -> None:
        self._is_busy = [False] * len(self.owners)
        self._edges_of: list[list[int]] = [[] for _ in self.owners]
        for edge, operator in enumerate(self.readers):
            self._edges_of[operator].append(edge)

    def address(self, operator: int) -> int:
        return 0

    def may_run(self, thread: int, operator: int) -> bool:
        return True

    def request(self, binding: Binding, now_ns: int) -> int:
        return 0

    def step(self, thread: int, now_ns: int) -> ThreadStep:
        with self._guard:
            task = self.queues[thread].take()
            if task is None:
                return IDLE
            assert isinstance(task, BlockTask)
            if self._is_busy[task.operator]:
                self._lines[task.edge].parked[task.sequence] = task
                self._counters[thread].parked += 1
                return ThreadStep(Action.PARK, task)
            step = self._receive(thread, task)
            self._is_busy[task.operator] = step.action is Action.PROCESS
            return step

    def finish(self, thread: int, task: BlockTask, now_ns: int) -> None:
        with self._guard:
            self._lines[task.edge].done += 1
            self._is_busy[task.operator] = False
            for edge in self._edges_of[task.operator]:
                line = self._lines[edge]
                following = line.parked.pop(line.done, None)
                if following is not None:
                    self.queues[thread].put(following)

    def _make_queues(self, queue: Callable[[], TaskQueue]) -> list[TaskQueue]:
        return [queue()] * self.threads
