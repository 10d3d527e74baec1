"""Popularity-aware grouping (PStream): hot keys, found by a sketch, are shuffled, the rest hashed."""

from __future__ import annotations

import numpy as np
from datasketches import frequent_items_error_type, frequent_items_sketch
from numpy.typing import NDArray

from lab.baselines.routing.shuffle import ShuffleGrouping
from penstock.routing.router import Hashes, Tasks

#: A key is hot if it has a fifth of a task's fair share: fewer such keys than 5 · tasks can exist.
_OF_A_TASK = 0.2
_SKETCH_SIZE = 12  # 2^12 counters: an error below 0.1 % of all rows
_SAMPLED = 4  # every fourth row is counted; the sketch is for keys that come all the time


class PopularityGrouping:
    """A row of a hot key goes to any task, one of another key to the task of its hash."""

    name = "popularity"
    splits_keys = True

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._sketch = frequent_items_sketch(_SKETCH_SIZE)
        self._shuffle = ShuffleGrouping(tasks)

    def assign(self, hashes: Hashes) -> Tasks:
        keys, counts = np.unique(hashes[::_SAMPLED], return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            self._sketch.update(key, count)
        tasks = (hashes % self._tasks).astype(np.int32)
        hot = np.isin(hashes, self.hot_keys())
        tasks[hot] = self._shuffle.assign(hashes[hot])
        return tasks

    def hot_keys(self) -> NDArray[np.int64]:
        """The hashes of the keys that are shuffled now."""
        least = int(self._sketch.total_weight * _OF_A_TASK / self._tasks)
        wanted = frequent_items_error_type.NO_FALSE_POSITIVES
        found = self._sketch.get_frequent_items(wanted, least)
        return np.array([item for item, *_ in found], np.int64)
