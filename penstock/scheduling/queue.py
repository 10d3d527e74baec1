"""The scheduling queue: operators by priority, the best one out first (enjima 3.2.2)."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from penstock.scheduling.policy import Floats


class SchedulingQueue:
    """Operators whose priority is above 0, each at most once. Of equal ones, by a plan the one with the
    larger number, which is downstream; after that the one that was put first.

    Putting an operator again changes its priority; the entry left behind is passed over when it comes up.
    Not thread-safe.
    """

    __slots__ = ("_count", "_entries", "_last", "_number", "_priority")

    def __init__(self, operators: int) -> None:
        self._count = operators
        self._priority = [0.0] * operators
        self._last: dict[int, float] = {}
        self._entries: list[tuple[float, int, int]] = []  # (−priority, tie, operator); a heap
        self._number = operators

    def load(self, priority: Floats) -> None:
        """Replaces everything by these priorities."""
        count = self._count
        chosen = (priority > 0.0).nonzero()[0]
        known, entries = [0.0] * count, []
        for operator, value in zip(chosen.tolist(), priority[chosen].tolist(), strict=True):
            known[operator] = value
            entries.append((-value, count - operator, operator))
        heapify(entries)
        self._priority, self._entries = known, entries
        self._last.clear()

    def put(self, operator: int, priority: float) -> None:
        """Gives one operator this priority; 0 or less takes it out."""
        self._priority[operator] = priority
        if priority > 0.0:
            self._number += 1
            heappush(self._entries, (-priority, self._number, operator))

    def priority(self, operator: int) -> float:
        """0 if it is not in the queue."""
        return self._priority[operator]

    def last(self, operator: int) -> float:
        """The priority with which it was last taken out since everything was replaced; else 0."""
        return self._last.get(operator, 0.0)

    def __len__(self) -> int:
        """How many there are, at the most: some may have changed since and count twice."""
        return len(self._entries)

    def pop(self) -> int | None:
        """Takes out the operator with the highest priority; None if there is none."""
        entries, known = self._entries, self._priority
        while entries:
            negative, _, operator = heappop(entries)
            if known[operator] == -negative:
                known[operator] = 0.0
                self._last[operator] = -negative
                return operator
        return None
