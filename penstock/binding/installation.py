"""Installing a binding while tasks flow: the machine that threads step through, without threads or a clock.

A driver calls ``send`` for every block that an operator emits, ``step`` for a thread that is free,
``finish`` when the thread has processed the task that the step gave it, and ``request`` when a policy has
planned. The tests choose the order of these calls, the simulator derives it from its virtual clock, the
engine's threads make it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from penstock.binding.policy import Binding
from penstock.binding.tasks import Action, BlockTask, Rebind, TaskQueue, ThreadStep
from penstock.metrics.rebinding import RebindCounters, RebindMetrics


class Line:
    """One edge as the protocol sees it. ``sent`` belongs to whoever runs the writing operator, the rest to
    whoever runs the reading one."""

    __slots__ = ("done", "parked", "sent")

    def __init__(self) -> None:
        self.sent = 0  # tasks stamped so far: the next one's sequence number
        self.done = 0  # tasks processed so far: the sequence number that is due
        self.parked: dict[int, BlockTask] = {}  # those that came too early, by sequence number


class Installation(ABC):
    """Queues, owners and edges of a run.

    What must hold for every interleaving: each task is processed once, those of an edge in order, an
    operator by one thread at a time, and once no more is requested the owners are those last requested.

    ``readers[e]`` is the operator that reads edge e. ``guard`` protects what several threads write; a driver
    with real threads gives a lock, others need none.
    """

    name: ClassVar[str]

    def __init__(
        self,
        readers: Sequence[int],
        binding: Sequence[int],
        threads: int,
        queue: Callable[[], TaskQueue] = TaskQueue,
        guard: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.readers = tuple(readers)
        self.threads = threads
        self.owners = list(binding)  # as observed: what is stored now
        self.requested = list(binding)  # as requested last; the owners follow
        self.queues = self._make_queues(queue)
        self._lines = [Line() for _ in readers]
        self._guard = guard if guard is not None else nullcontext()
        self._counters = [RebindCounters() for _ in range(threads)]  # each written by its thread only
        self._prepare()

    # -- for whoever sends -----------------------------------------------------------------------

    def send(self, edge: int, payload: Any = None, priority: int = 0) -> int:
        """Puts the next block of an edge into the queue of the thread that owns its reader; returns the
        thread."""
        task = self.stamp(edge, payload, priority)
        thread = self.address(task.operator)
        self.deliver(task, thread)
        return thread

    def stamp(self, edge: int, payload: Any = None, priority: int = 0) -> BlockTask:
        """The next task of an edge. Only whoever runs the writing operator may call it."""
        line = self._lines[edge]
        task = BlockTask(self.readers[edge], edge, line.sent, priority, payload)
        line.sent += 1
        return task

    def address(self, operator: int) -> int:
        """The thread to send to. It may own the operator no more by the time the task is there."""
        return self.owners[operator]

    def deliver(self, task: BlockTask, thread: int) -> None:
        self.queues[thread].put(task)

    # -- for whoever decides ---------------------------------------------------------------------

    @abstractmethod
    def request(self, binding: Binding, now_ns: int) -> int:
        """Asks for a new binding; returns how many operators it moves. One caller at a time, never waits."""

    # -- for threads -----------------------------------------------------------------------------

    @abstractmethod
    def step(self, thread: int, now_ns: int) -> ThreadStep:
        """Takes the next task out of the thread's queue and says what became of it."""

    def finish(self, thread: int, task: BlockTask, now_ns: int) -> None:
        """The thread has processed the task, and delivered all that this emitted."""
        line = self._lines[task.edge]
        line.done += 1
        following = line.parked.pop(line.done, None)
        if following is not None:
            self.queues[thread].put(following)

    def may_run(self, thread: int, operator: int) -> bool:
        """Whether tasks of the operator belong into this thread's queue now."""
        return self.owners[operator] == thread

    def waited(self, thread: int, wait_ns: int) -> None:
        """The driver tells how long a thread was held up by ``WAIT``."""
        self._counters[thread].waited_ns += wait_ns

    # -- for whoever watches ---------------------------------------------------------------------

    def metrics(self) -> RebindMetrics:
        return RebindMetrics.of(self._counters)

    @property
    def parked(self) -> int:
        """Tasks that wait at their edges now."""
        return sum(len(line.parked) for line in self._lines)

    # -- what they have in common ----------------------------------------------------------------

    def _prepare(self) -> None:  # noqa: B027 - some need nothing more
        """Makes what else the installation needs."""

    def _make_queues(self, queue: Callable[[], TaskQueue]) -> list[TaskQueue]:
        return [queue() for _ in range(self.threads)]

    def _receive(self, thread: int, task: BlockTask) -> ThreadStep:
        """The task's operator belongs to this thread: process the task if it is due, else park it."""
        line = self._lines[task.edge]
        if task.sequence == line.done:
            return ThreadStep(Action.PROCESS, task)
        line.parked[task.sequence] = task
        self._counters[thread].parked += 1
        return ThreadStep(Action.PARK, task)

    def _forward(self, thread: int, task: BlockTask | Rebind) -> ThreadStep:
        """It was in the wrong queue. Should the owner change before it is there, it is forwarded again."""
        to = self.address(task.operator)
        self._counters[thread].forwarded += 1
        self.queues[to].put(task)
        return ThreadStep(Action.FORWARD, task, to)
