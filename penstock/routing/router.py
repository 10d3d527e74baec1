"""The two-tier router (ms-stream algorithm 1): key → virtual partition → task, one hash and one lookup a row.

The hash is Spark's ``xxhash64`` (``penstock.kernels.hashing``), so that the same key meets the same partition
in either runtime. Here begins what follows the hash.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed
from penstock.routing.route import Move, Route

Hashes = NDArray[np.int64]
Tasks = NDArray[np.int32]


@dataclass(frozen=True)
class Split:
    """The rows of a block by task: ``order[starts[t]:starts[t + 1]]`` are those of task t, in their order."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    def rows(self, task: int) -> NDArray[np.int64]:
        """The places of a task's rows in the block, ascending."""
        return self.order[self.starts[task] : self.starts[task + 1]]


class TwoTierRouter:
    """The table of V entries, and how many rows each virtual partition has had since it was last asked.

    >>> router = TwoTierRouter((0, 1, 0, 1), 2)
    >>> router.tasks_of(np.array([4, 5, -1])).tolist()
    [0, 1, 1]
    >>> router.apply(Move(3, 1, 0))
    >>> router.tasks_of(np.array([-1])).tolist(), router.route
    ([0], (0, 1, 0, 0))
    """

    def __init__(self, route: Route, tasks: int) -> None:
        if route and not 0 <= min(route) <= max(route) < tasks:
            raise ValueError(f"a route to tasks {min(route)} to {max(route)}, but there are {tasks}")
        self.tasks = tasks
        self._table: Tasks = np.array(route, np.int32)
        self._rows: NDArray[np.int64] = np.zeros(len(route), np.int64)

    @property
    def route(self) -> Route:
        return tuple(self._table.tolist())

    def tasks_of(self, hashes: Hashes) -> Tasks:
        """The data stream: the owner of each row (steps 4 to 7)."""
        owners: Tasks = self._table[hashes % len(self._table)]
        return owners

    def split(self, hashes: Hashes) -> Split:
        """The same for a block, with its rows sorted by task and counted by partition, in one kernel."""
        order = np.empty(len(hashes), np.int64)
        starts = np.zeros(self.tasks + 1, np.int64)
        split_rows(np.ascontiguousarray(hashes, np.int64), self._table, self._rows, order, starts)
        return Split(order, starts)

    def apply(self, move: Move) -> None:
        """The control stream: a partition has a new owner (steps 10 to 12)."""
        if not 0 <= move.target < self.tasks:
            raise ValueError(f"partition {move.partition} cannot move to task {move.target} of {self.tasks}")
        if self._table[move.partition] != move.source:
            raise ValueError(
                f"partition {move.partition} belongs to task {self._table[move.partition]}, not {move.source}"
            )
        self._table[move.partition] = move.target

    def take_rows(self) -> tuple[int, ...]:
        """Rows by virtual partition since the last call."""
        counted = tuple(self._rows.tolist())
        self._rows[:] = 0
        return counted


@fixed("void(int64[::1], int32[::1], int64[::1], int64[::1], int64[::1])")
def split_rows(
    hashes: Hashes,
    table: Tasks,
    rows: NDArray[np.int64],
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> None:
    """Sorts the rows of a block by task, those of a task in their order, and counts them by partition.

    A counting sort: two passes, of which the second finds its task by the same lookup again; to store the
    tasks of the first would cost more than that.
    """
    partitions = np.int64(table.size)
    for row in range(hashes.size):
        partition = hashes[row] % partitions
        if partition < 0:
            partition += partitions
        rows[partition] += 1
        starts[table[partition] + 1] += 1
    for task in range(1, starts.size):
        starts[task] += starts[task - 1]
    places = starts[:-1].copy()
    for row in range(hashes.size):
        partition = hashes[row] % partitions
        if partition < 0:
            partition += partitions
        task = table[partition]
        order[places[task]] = row
        places[task] += 1
