"""Shuffle grouping: rows to tasks in turn. Even, whatever the keys; and every task may have every key."""

from __future__ import annotations

import numpy as np

from penstock.routing.router import Hashes, Tasks


class ShuffleGrouping:
    """
    >>> ShuffleGrouping(2).assign(np.array([9, 9, 9])).tolist()
    [0, 1, 0]
    """

    name = "shuffle"
    splits_keys = True

    def __init__(self, tasks: int) -> None:
        self._tasks, self._next = tasks, 0

    def assign(self, hashes: Hashes) -> Tasks:
        tasks = (np.arange(self._next, self._next + len(hashes)) % self._tasks).astype(np.int32)
        self._next = (self._next + len(hashes)) % self._tasks
        return tasks
