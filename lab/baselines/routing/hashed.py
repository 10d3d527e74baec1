"""Hash grouping: a key's task is its hash modulo the number of tasks, for ever. The baseline that always
fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.routing.router import Hashes, Tasks


@dataclass(frozen=True)
class HashGrouping:
    """
    >>> HashGrouping(3).assign(np.array([4, 5, -1])).tolist()
    [1, 2, 2]
    """

    tasks: int
    name: str = "hash"
    splits_keys: bool = False

    def assign(self, hashes: Hashes) -> Tasks:
        return (hashes % self.tasks).astype(np.int32)
