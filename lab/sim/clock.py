"""The virtual clock: what happens next, in order of time and, at one time, in the order it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Action = Callable[..., None]


class SimulatedClock:
    """Calls actions at their times. Nothing here knows the real time, so equal runs are equal to the digit.

    >>> clock, seen = Clock(), []
    >>> clock.at(20, seen.append, "later")
    >>> clock.at(10, seen.append, "sooner")
    >>> clock.run(15), seen, clock.now_ns
    (None, ['sooner'], 15)
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self._heap: list[tuple[int, int, Action, tuple[Any, ...]]] = []
        self._asked = 0

    def at(self, time_ns: int, action: Action, *arguments: Any) -> None:
        """Calls ``action(*arguments)`` at that time, which must not lie in the past."""
        if time_ns < self.now_ns:
            raise ValueError(f"time runs forwards only: asked for {time_ns} ns at {self.now_ns} ns")
        self._asked += 1
        heappush(self._heap, (time_ns, self._asked, action, arguments))

    def run(self, until_ns: int) -> None:
        """Lets time pass up to and including ``until_ns``."""
        heap = self._heap
        while heap and heap[0][0] <= until_ns:
            self.now_ns, _, action, arguments = heappop(heap)
            action(*arguments)
        self.now_ns = until_ns
