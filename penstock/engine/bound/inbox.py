"""The queue of a thread that owns operators: others put tasks in, the thread takes them out or sleeps."""

from __future__ import annotations

from collections import deque
from threading import Condition

from penstock.binding.tasks import BlockTask, Rebind, TaskQueue


class WorkerInbox(TaskQueue):
    """Rebinds first, then tasks in order of arrival. A lock is taken only by, and for, a thread that sleeps.

    ``put`` appends and then looks for sleepers; a sleeper says so and then looks for tasks. Whichever comes
    second sees the other, so that no task is slept over.
    """

    def __init__(self) -> None:
        self._rebinds: deque[Rebind] = deque()
        self._tasks: deque[BlockTask] = deque()
        self._condition = Condition()
        self._sleepers = 0
        self.wakings = 0

    def put(self, task: BlockTask | Rebind) -> None:
        if isinstance(task, BlockTask):
            self._tasks.append(task)
        else:
            self._rebinds.append(task)
        if self._sleepers:
            with self._condition:
                self._condition.notify()

    def take(self) -> BlockTask | Rebind | None:
        try:
            return self._rebinds.popleft() if self._rebinds else self._tasks.popleft()
        except IndexError:  # also where several threads share one inbox and another was quicker
            return None

    def wake(self) -> None:
        with self._condition:
            self.wakings += 1
            self._condition.notify_all()

    def sleep(self, seen: int, timeout_s: float | None = None, *, for_task: bool = True) -> None:
        """Waits for ``wake``, for a task unless ``for_task`` is False, or until the time is over.

        ``seen`` is what ``wakings`` was before the thread looked what there is to do: it does not sleep if
        it was woken since.
        """
        with self._condition:
            self._sleepers += 1
            try:
                if self.wakings == seen and not (for_task and len(self)):
                    self._condition.wait(timeout_s)
            finally:
                self._sleepers -= 1

    def __len__(self) -> int:
        return len(self._rebinds) + len(self._tasks)
