"""Partial key grouping: every key has two tasks, and a row takes the one that has had fewer rows so far."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from penstock.routing.router import Hashes, Tasks


class PartialKeyGrouping:
    """The power of two choices. A key hotter than two tasks still overloads both."""

    name = "partial_key"
    splits_keys = True

    def __init__(self, tasks: int) -> None:
        self._given: NDArray[np.int64] = np.zeros(tasks, np.int64)

    def assign(self, hashes: Hashes) -> Tasks:
        tasks: Tasks = np.empty(len(hashes), np.int32)
        _choose(hashes, self._given, tasks)
        return tasks


@njit(nogil=True, cache=True, error_model="numpy")
def _choose(hashes, given, tasks):  # type: ignore[no-untyped-def]
    count = np.uint64(given.size)
    for row in range(hashes.size):
        bits = np.uint64(hashes[row])
        first = np.int64(bits % count)
        # The second choice is a hash of the first one: one more multiply and shift, as splitmix does.
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits ^= bits >> np.uint64(27)
        second = np.int64(bits % count)
        chosen = first if given[first] <= given[second] else second
        given[chosen] += 1
        tasks[row] = chosen
