"""What threads find in their queues: tasks and rebinds; and what a thread did with one, a step."""

from __future__ import annotations

from enum import Enum, auto
from heapq import heappop, heappush
from typing import Any, NamedTuple


class BlockTask(NamedTuple):
    """A block of an edge that waits for the operator which reads that edge."""

    operator: int
    edge: int
    sequence: int  # its place on the edge, from 0; the operator takes an edge's tasks in this order
    priority: int = 0  # the smaller the sooner, such as its event time; must not decrease along an edge
    payload: Any = None


class Rebind(NamedTuple):
    """Tells an operator's owner to whom the operator goes. Before all tasks."""

    operator: int
    thread: int  # the new owner
    generation: int  # of this operator's requests; a later one prevails, whichever comes first
    requested_ns: int


class Action(Enum):
    """What a thread did in a step."""

    IDLE = auto()  # its queue is empty
    PROCESS = auto()  # the task's operator is to run, in this thread; then ``finish``
    FORWARD = auto()  # the task or rebind was in the wrong queue; it went on to ``to``
    PARK = auto()  # the task came too early; it stays at its edge until those before it are done
    REBIND = auto()  # the operator's new owner, ``to``, is stored
    OVERTAKEN = auto()  # a rebind that a later one has made obsolete
    WAIT = auto()  # at a barrier, for the others: nothing can be done before the queue's ``wake``
    MOVE = auto()  # at a barrier: its misplaced tasks went to their new owners


class ThreadStep(NamedTuple):
    """One step of a thread."""

    action: Action
    task: BlockTask | Rebind | None = None
    to: int = -1


IDLE = ThreadStep(Action.IDLE)
WAIT = ThreadStep(Action.WAIT)


class TaskQueue:
    """What waits for a thread: rebinds first, then tasks by priority, then in order of arrival.

    Whoever drives the threads may give another class with the same face, to be told of ``put`` and ``wake``.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, BlockTask | Rebind]] = []
        self._arrivals = 0

    def put(self, task: BlockTask | Rebind) -> None:
        """Adds one; called by any thread."""
        self._arrivals += 1
        rank, priority = (1, task.priority) if isinstance(task, BlockTask) else (0, 0)
        heappush(self._heap, (rank, priority, self._arrivals, task))

    def take(self) -> BlockTask | Rebind | None:
        """The first; called by the owning thread only. None if there is none."""
        return heappop(self._heap)[3] if self._heap else None

    def wake(self) -> None:
        """Tells the thread that it may go on although nothing was put. There is nothing to wake here."""

    def __len__(self) -> int:
        return len(self._heap)
