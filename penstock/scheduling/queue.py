"""The scheduling queue: operators by priority, the best one out first (enjima 3.2.2)."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from penstock.scheduling.policy import Floats, Integers


class SchedulingQueue:
    """Operators whose priority is above 0, each at most once. Of equal ones, by a plan the one with the
    larger number, which is downstream; after that the one that was put first.

    Kept by operator, and searched whole: over a few hundred operators that takes less than a microsecond. The
    arrays may belong to someone else who reads and writes them too. Not thread-safe.
    """

    __slots__ = ("_counts", "_priority", "_taken", "_tickets", "_views")

    def __init__(
        self,
        operators: int,
        priority: Floats | None = None,
        taken: Floats | None = None,
        tickets: Integers | None = None,
        counts: Integers | None = None,
    ) -> None:
        """``taken``: priorities with which operators were taken out. ``counts``: of those in the queue, and
        of tickets."""
        self._priority = np.zeros(operators) if priority is None else priority
        self._taken = np.zeros(operators) if taken is None else taken
        self._tickets = np.zeros(operators, np.int64) if tickets is None else tickets
        self._counts = np.zeros(2, np.int64) if counts is None else counts
        arrays: tuple[Any, ...] = (self._priority, self._taken, self._tickets, self._counts)
        self._views: tuple[Any, ...] = tuple(memoryview(array) for array in arrays)

    def load(self, priority: Floats) -> None:
        """Replaces everything by these priorities."""
        _load(priority, self._priority, self._taken, self._tickets, self._counts)

    def put(self, operator: int, priority: float) -> None:
        """Gives one operator this priority; 0 or less takes it out."""
        known, _, tickets, counts = self._views
        counts[0] += (priority > 0.0) - (known[operator] > 0.0)
        known[operator] = max(priority, 0.0)
        if priority > 0.0:
            counts[1] += 1
            tickets[operator] = counts[1]

    def priority(self, operator: int) -> float:
        """0 if it is not in the queue."""
        return float(self._views[0][operator])

    def last(self, operator: int) -> float:
        """The priority with which it was last taken out since everything was replaced; else 0."""
        return float(self._views[1][operator])

    def __len__(self) -> int:
        return int(self._views[3][0])

    def first(self) -> int | None:
        """The operator with the highest priority, which stays; None if there is none."""
        return int(best(self._priority, self._tickets)) if self._views[3][0] else None

    def pop(self) -> int | None:
        """Takes out the operator with the highest priority; None if there is none."""
        known, taken, _, counts = self._views
        if not counts[0]:
            return None
        operator = int(best(self._priority, self._tickets))
        taken[operator] = known[operator]
        known[operator] = 0.0
        counts[0] -= 1
        return operator


@numba.njit("int64(float64[::1], int64[::1])", cache=True)
def best(priority: Floats, tickets: Integers) -> int:
    """The operator that comes first; −1 if none has a priority above 0."""
    first, highest, ticket = -1, 0.0, 0
    for operator in range(len(priority)):
        value = priority[operator]
        if value > highest or (value == highest and value > 0.0 and tickets[operator] < ticket):
            first, highest, ticket = operator, value, tickets[operator]
    return first


@numba.njit("void(float64[::1], float64[::1], float64[::1], int64[::1], int64[::1])", cache=True)
def _load(loaded: Floats, priority: Floats, taken: Floats, tickets: Integers, counts: Integers) -> None:
    count = len(loaded)
    counts[0], counts[1] = 0, count
    for operator in range(count):
        priority[operator] = max(loaded[operator], 0.0)
        taken[operator] = 0.0
        tickets[operator] = count - operator
        counts[0] += loaded[operator] > 0.0
