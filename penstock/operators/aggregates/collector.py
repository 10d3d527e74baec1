"""Aggregates that keep every value of a group until it is complete."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.builder import Code
from penstock.memory.layout import Columns
from penstock.operators.aggregates.accumulator import EventPlace, Finished
from penstock.operators.windows.panes import ranges
from penstock.query.types import DataType

Ints = NDArray[np.int64]

_SMALLEST = 256


@dataclass(frozen=True)
class Kept:
    """One column of what is kept: its name and type as state, and what it is in memory, if it is other."""

    name: str
    dtype: DataType
    memory: np.dtype[Any]


class Collector(ABC):
    """Values that are not null, each with the group it belongs to, in arrays that grow."""

    def __init__(self, columns: Sequence[Kept]) -> None:
        self.columns = tuple(columns)
        self.count = 0
        self._groups = np.zeros(_SMALLEST, np.int64)
        self._values: Columns = tuple(np.zeros(_SMALLEST, column.memory) for column in columns)

    @abstractmethod
    def taken(self, values: Sequence[Code], place: EventPlace) -> list[str]:
        """What a kernel keeps of an event, column by column."""

    @abstractmethod
    def results(self, owners: Ints, columns: Columns, count: int) -> Finished:
        """The results of ``count`` owners; row i of ``columns`` belongs to ``owners[i]``, in no order."""

    def needed(self, groups: Ints, columns: Columns) -> NDArray[Any] | None:
        """Which rows say all that ``results`` needs, and in which order; None: all, as they are."""
        return None

    # -- in kernels ------------------------------------------------------------------------------------------

    @property
    def arrays(self) -> Columns:
        """Groups and values with their spare room."""
        return (self._groups, *self._values)

    def reserve(self, added: int) -> None:
        """Makes room for that many more values."""
        if self.count + added > len(self._groups):
            self._resize(max(self.count + added, 2 * len(self._groups)))

    def update(
        self, number: int, first: int, group: str, values: Sequence[Code], place: EventPlace
    ) -> list[str]:
        """Statements that add an event; it is collector ``number`` of the kernel, whose arrays begin at
        ``first``.
        """
        kept = [group, *self.taken(values, place)]
        return [
            *(f"collected{first + i}[filled[{number}]] = {value}" for i, value in enumerate(kept)),
            f"filled[{number}] += 1",
        ]

    # -- when groups are complete ----------------------------------------------------------------------------

    def finish(self, parts: Ints, targets: Ints, count: int) -> Finished:
        """The results of ``count`` targets; group ``parts[i]`` is a part of target ``targets[i]``."""
        groups = self._groups[: self.count]
        by_group = np.argsort(groups, kind="stable")
        groups = groups[by_group]
        low, high = np.searchsorted(groups, parts), np.searchsorted(groups, parts, side="right")
        rows = by_group[ranges(low, high - low)]
        owners = np.repeat(targets, high - low)
        return self.results(owners, tuple(values[rows] for values in self._values), count)

    def drop(self, groups: Ints, size: int) -> None:
        """Forgets the values of these groups; all groups are below ``size``."""
        dropped = np.zeros(size, np.bool_)
        dropped[groups] = True
        self._keep(~dropped[self._groups[: self.count]])
        if 4 * self.count < len(self._groups) > _SMALLEST:
            self._resize(max(_SMALLEST, 2 * self.count))

    def reset(self) -> None:
        """Forgets all values."""
        self.count = 0
        if len(self._groups) > _SMALLEST:
            self._resize(_SMALLEST)

    def relabel(self, renamed: Ints) -> None:
        """Group g is from now on ``renamed[g]``."""
        self._groups[: self.count] = renamed[self._groups[: self.count]]

    # -- as state --------------------------------------------------------------------------------------------

    def rows(self) -> tuple[Ints, Columns]:
        """Groups and columns of what is needed, as state."""
        groups = self._groups[: self.count]
        columns = self._columns()
        needed = self.needed(groups, columns)
        chosen: Any = slice(None) if needed is None else needed
        kept = zip(columns, self.columns, strict=True)
        return groups[chosen].copy(), tuple(values[chosen].astype(one.dtype.numpy) for values, one in kept)

    def add(self, groups: Ints, columns: Columns) -> None:
        """Takes in rows that ``rows`` gave."""
        self.reserve(len(groups))
        added = slice(self.count, self.count + len(groups))
        for array, values in zip(self.arrays, (groups, *columns), strict=True):
            array[added] = values
        self.count += len(groups)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def _columns(self) -> Columns:
        return tuple(values[: self.count] for values in self._values)

    def _keep(self, chosen: NDArray[Any]) -> None:
        kept = [array[: self.count][chosen] for array in self.arrays]
        self.count = len(kept[0])
        for array, values in zip(self.arrays, kept, strict=True):
            array[: self.count] = values

    def _resize(self, capacity: int) -> None:
        self._groups, *values = (self._resized(array, capacity) for array in self.arrays)
        self._values = tuple(values)

    def _resized(self, array: NDArray[Any], capacity: int) -> NDArray[Any]:
        resized = np.zeros(capacity, array.dtype)
        resized[: self.count] = array[: self.count]
        return resized
