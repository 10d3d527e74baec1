"""The k best ranks of each group, as heaps in one array, so that a kernel knows the k-th best at any time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.compiled.fixed import part

Ints = NDArray[np.int64]

WORST = (1 << 63) - 1
_LARGEST_K = 64  # above that, k places for every group may be far more than its events

_INTS = types.Array(types.int64, 1, "C")
#: The Numba type of ``BestRanks.arrays``.
BEST_RANKS_TYPE = types.Tuple((_INTS, _INTS, _INTS))  # type: ignore[no-untyped-call]


class BestRanks:
    """Per group a limit: a rank (smaller is better) above it cannot be among the best k. Large k: no heaps.

    ``limits`` by group, ``heap``: k places per group, the worst first, ``held``: how many of them are taken.
    """

    def __init__(self, k: int, capacity: int) -> None:
        self.places = k if k <= _LARGEST_K else 0
        self.limits = np.zeros(0, np.int64)
        self._heap = np.zeros(0, np.int64)
        self._held = np.zeros(0, np.int64)
        self.resize(capacity)

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints]:
        """What kernels get: limits, heap, held."""
        return self.limits, self._heap, self._held

    def resize(self, capacity: int) -> None:
        """Makes room for groups 0 to ``capacity``; those that remain keep their limits."""
        if len(self.limits) != capacity:
            self.limits = _resized(self.limits, capacity)
            self._held = _resized(self._held, capacity)
            self._heap = _resized(self._heap, capacity * self.places)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)


@part()
def offer(heap: Ints, held: Ints, group: Any, places: Any, rank: Any) -> Any:
    """Puts a rank into the group's heap if it is one of the best so far; returns the group's limit."""
    base = group * places
    size = held[group]
    if size < places:
        place = size
        heap[base + place] = rank
        while place > 0:
            parent = (place - 1) // 2
            if heap[base + parent] >= heap[base + place]:
                break
            heap[base + parent], heap[base + place] = heap[base + place], heap[base + parent]
            place = parent
        held[group] = size + 1
        return heap[base] if size + 1 == places else np.int64(WORST)
    if rank < heap[base]:
        place = 0
        while True:
            child = 2 * place + 1
            if child >= places:
                break
            if child + 1 < places and heap[base + child + 1] > heap[base + child]:
                child += 1
            if heap[base + child] <= rank:
                break
            heap[base + place] = heap[base + child]
            place = child
        heap[base + place] = rank
    return heap[base]


def _resized(array: Ints, length: int) -> Ints:
    resized = np.zeros(length, np.int64)
    kept = min(length, len(array))
    resized[:kept] = array[:kept]
    return resized
