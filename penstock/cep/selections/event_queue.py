"""The splitter's queue: an event stays until every instance that holds it has acknowledged it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from penstock.query.errors import PenstockError


class EventQueue:
    """How many holders each event still has; positions before ``first`` are gone.

    Instances work through what they hold in the order of the stream, so an acknowledgement is a position:
    everything before it that the instance holds is done. Events that nobody holds are not kept at all.
    """

    def __init__(self) -> None:
        self.first = 0  # everything before it has been discarded
        self._waiting: NDArray[np.int32] = np.zeros(1024, np.int32)  # holders, of positions from ``first`` on
        self._stop = 0  # position behind the last event
        self._held: dict[int, deque[tuple[int, int]]] = {}  # per instance, what it has not acknowledged
        self._acknowledged: dict[int, int] = {}
        self.length = 0  # events with holders

    @classmethod
    def of(cls, stop: int, first_held: Mapping[int, int]) -> EventQueue:
        """A queue of a stream that has come to ``stop``; each instance holds all events from one on."""
        queue = cls()
        queue.first = queue._stop = min(first_held.values(), default=stop)
        queue.extend(stop)
        for instance, start in first_held.items():
            queue.hold(instance, start, stop)
        return queue

    def extend(self, stop: int) -> None:
        """Events up to position ``stop`` have arrived; nobody holds them yet."""
        size = stop - self.first
        if size > len(self._waiting):
            bigger = np.zeros(max(size, 2 * len(self._waiting)), np.int32)
            bigger[: self._stop - self.first] = self._waiting[: self._stop - self.first]
            self._waiting = bigger
        self._stop = max(self._stop, stop)

    def hold(self, instance: int, start: int, stop: int) -> None:
        """The instance gets events [start, stop); per instance, positions only rise."""
        if start >= stop:
            return
        ranges = self._held.setdefault(instance, deque())
        begun = self._acknowledged.get(instance, 0)
        if start < begun or (ranges and start < ranges[-1][1]):
            raise PenstockError(f"events come in order: instance {instance} was given {start} again")
        part = self._waiting[start - self.first : stop - self.first]
        self.length += int(np.count_nonzero(part == 0))
        part += 1
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], stop)
        else:
            ranges.append((start, stop))

    def acknowledge(self, instance: int, upto: int) -> int:
        """The instance is done with everything before position ``upto``; returns how many events that
        freed."""
        ranges = self._held.get(instance, deque())
        freed = 0
        while ranges and ranges[0][0] < upto:
            start, stop = ranges.popleft()
            if stop > upto:
                ranges.appendleft((upto, stop))
                stop = upto
            part = self._waiting[start - self.first : stop - self.first]
            part -= 1
            freed += int(np.count_nonzero(part == 0))
        self._acknowledged[instance] = max(self._acknowledged.get(instance, 0), min(upto, self._stop))
        self.length -= freed
        return freed

    def discard(self) -> int:
        """Gives up the events before the first that someone still holds; returns that position."""
        oldest = min((ranges[0][0] for ranges in self._held.values() if ranges), default=self._stop)
        gone = oldest - self.first
        if gone:
            left = self._stop - oldest
            self._waiting[:left] = self._waiting[gone : gone + left].copy()
            self._waiting[left:] = 0
            self.first = oldest
        return oldest

    @property
    def holders(self) -> list[int]:
        """The instances that have something left to do."""
        return [instance for instance, ranges in self._held.items() if ranges]

    def holds(self, instance: int) -> bool:
        """Whether the instance has anything left to do."""
        return bool(self._held.get(instance))

    def forget(self, instance: int) -> None:
        """The instance has shut down."""
        if self.holds(instance):
            raise PenstockError(f"instance {instance} holds events: it cannot shut down before it is done")
        self._held.pop(instance, None)
        self._acknowledged.pop(instance, None)
