"""Timers of process functions: per key a set of times, and one queue over all keys."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

from penstock.memory.edges import END_OF_TIME, START_OF_TIME
from penstock.query.user_functions import Context


class Key:
    """What is kept per key."""

    __slots__ = ("context", "fired", "hash", "seen", "tied", "tied_time")

    context: Context

    def __init__(self, key_hash: int) -> None:
        self.hash = key_hash
        self.seen = START_OF_TIME  # the time of its last event
        self.fired = 0  # timers since its last event or, before the end, since its time last moved
        # Rows from timers at one time are told apart by how many timers fired at that time before.
        self.tied_time = START_OF_TIME
        self.tied = 0

    def next_tie(self) -> int:
        """How many of its timers fired at the time of ``context`` before this one."""
        if self.tied_time != self.context.time:
            self.tied_time, self.tied = self.context.time, 0
        self.tied += 1
        return self.tied - 1

    def remembered(self) -> tuple[dict[str, Any], frozenset[int]]:
        """A copy of its state and timers."""
        return dict(self.context.state), frozenset(self.context.timers)

    def go_back(self, state: dict[str, Any], timers: frozenset[int]) -> None:
        """Takes back whatever has become of its state and timers since."""
        self.context.state = state
        for time in self.context.timers - timers:
            self.context.timers.discard(time)
        for time in timers - self.context.timers:
            self.context.timers.add(time)


class TimerQueue:
    """The timers of all keys by (time, hash of the key); deleted ones are passed over when met."""

    __slots__ = ("_heap", "_number", "first", "live")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Key]] = []
        self._number = 0
        self.first = END_OF_TIME  # no timer is before it
        self.live = 0

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, time_us: int, key: Key) -> None:
        heappush(self._heap, (time_us, key.hash, self._number, key))
        self._number += 1
        self.live += 1
        self.first = self._heap[0][0]

    def forget(self, count: int) -> None:
        """Notes that timers were deleted or fired. Deleted ones are cleared out when they are the most."""
        self.live -= count
        if len(self._heap) > 2 * self.live + 64:
            kept: dict[tuple[int, int], tuple[int, int, int, Key]] = {}
            for entry in self._heap:
                if entry[0] in entry[3].context.timers:
                    kept[entry[0], id(entry[3])] = entry
            self._heap = list(kept.values())
            heapify(self._heap)

    def pop(self, until_us: int) -> tuple[int, Key] | None:
        """Takes the first timer that is not after ``until_us``."""
        heap = self._heap
        while heap and heap[0][0] <= until_us:
            time, _, _, key = heappop(heap)
            if time in key.context.timers:
                key.context.timers.discard(time)
                heap = self._heap
                self.first = heap[0][0] if heap else END_OF_TIME
                return time, key
        self.first = heap[0][0] if heap else END_OF_TIME
        return None


class Timers(set[int]):
    """One key's timers; setting one queues it."""

    def __init__(self, queue: TimerQueue, key: Key) -> None:
        super().__init__()
        self._queue = queue
        self._key = key

    def add(self, time_us: int) -> None:
        if isinstance(time_us, bool) or not isinstance(time_us, int):
            raise TypeError(f"a timer's time must be an int of microseconds, got {time_us!r}")
        if not START_OF_TIME <= time_us <= END_OF_TIME:
            raise ValueError(f"a timer's time must fit in 64 bits, got {time_us}")
        if time_us not in self:
            super().add(time_us)
            self._queue.push(time_us, self._key)

    def discard(self, time_us: object) -> None:
        if time_us in self:
            super().discard(time_us)
            self._queue.forget(1)

    def clear(self) -> None:
        count = len(self)
        super().clear()
        self._queue.forget(count)
