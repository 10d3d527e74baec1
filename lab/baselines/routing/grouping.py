"""Groupings: the ways to give rows to tasks that two-tier routing is compared with, behind one interface."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from penstock.routing.router import Hashes, Tasks


class Grouping(Protocol):
    """Gives every row a task. It may remember what it has given before."""

    @property
    def name(self) -> str: ...

    @property
    def splits_keys(self) -> bool:
        """Whether one key can go to several tasks: only for functions whose partial results can be merged."""
        ...

    def assign(self, hashes: Hashes) -> Tasks:
        """The task of each row of a block, given the hashes of their keys."""
        ...


def partial_results(hashes: Hashes, tasks: Tasks, count: int) -> int:
    """How many partial results there are: distinct pairs of key and task among ``count`` tasks.

    A grouping that splits keys has all of them to merge, once a window.

    >>> partial_results(np.array([7, 7, 8]), np.array([0, 1, 0], np.int32), 2)
    3
    """
    _, keys = np.unique(hashes, return_inverse=True)
    return len(np.unique(keys.astype(np.int64) * count + tasks))
