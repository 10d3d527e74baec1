"""Aggregates that keep every value of a group until it is complete: distinct counts and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.builder import Code
from penstock.memory.layout import Columns
from penstock.operators.panes import ranges
from penstock.query.aggregates import Aggregate, AggregateKind
from penstock.query.types import DataType

Ints = NDArray[np.int64]

_SMALLEST = 256


class Collected:
    """Values that are not null, each with the group it belongs to, in two arrays that grow.

    Quantiles keep float64; distinct counts keep words, as keys do, so that equal values are equal integers.
    """

    def __init__(self, aggregate: Aggregate, dtype: DataType) -> None:
        self._aggregate = aggregate
        self._dtype = dtype  # of the values that it is given
        self._distinct = aggregate.kind is AggregateKind.COUNT_DISTINCT
        self.count = 0
        self._groups = np.zeros(_SMALLEST, np.int64)
        self._values: NDArray[Any] = np.zeros(_SMALLEST, np.int64 if self._distinct else np.float64)

    # -- in kernels ------------------------------------------------------------------------------------------

    @property
    def arrays(self) -> Columns:
        """Groups and values with their spare room."""
        return (self._groups, self._values)

    def reserve(self, added: int) -> None:
        """Makes room for that many more values."""
        if self.count + added > len(self._groups):
            self._resize(max(self.count + added, 2 * len(self._groups)))

    def update(self, place: int, group: str, value: Code) -> list[str]:
        """Statements that add an event's value; it is number ``place`` of the kernel's collected
        aggregates.
        """
        if not self._distinct:
            kept = f"float64({value.value})"
        elif value.dtype.is_float:
            kept = f"float_word({value.value})"
        else:
            kept = f"int64({value.value})"
        lines = [
            f"collected{2 * place}[filled[{place}]] = {group}",
            f"collected{2 * place + 1}[filled[{place}]] = {kept}",
            f"filled[{place}] += 1",
        ]
        return lines if value.null is None else [f"if not {value.null}:", *(f"    {line}" for line in lines)]

    # -- when groups are complete ----------------------------------------------------------------------------

    def finish(self, parts: Ints, targets: Ints, count: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """The results of ``count`` targets; group ``parts[i]`` is a part of target ``targets[i]``."""
        groups = self._groups[: self.count]
        by_group = np.argsort(groups, kind="stable")
        groups = groups[by_group]
        low, high = np.searchsorted(groups, parts), np.searchsorted(groups, parts, side="right")
        values = self._values[by_group[ranges(low, high - low)]]
        owners = np.repeat(targets, high - low)
        order = np.lexsort((values, owners))  # NaN last
        values, owners = values[order], owners[order]
        if self._distinct:
            new = np.ones(len(values), np.bool_)
            new[1:] = (values[1:] != values[:-1]) | (owners[1:] != owners[:-1])
            return np.bincount(owners[new], minlength=count), None
        return self._quantiles(values, np.bincount(owners, minlength=count))

    def _quantiles(self, values: NDArray[np.float64], counts: Ints) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        assert self._aggregate.parameter is not None
        empty = counts == 0
        results = np.zeros(len(counts))
        first = (np.cumsum(counts) - counts)[~empty]
        position = self._aggregate.parameter * (counts[~empty] - 1)
        below = np.floor(position).astype(np.int64)
        share = position - below
        low = values[first + below]
        high = values[np.minimum(first + below + 1, first + counts[~empty] - 1)]
        with np.errstate(invalid="ignore"):  # inf - inf
            results[~empty] = np.where(share == 0.0, low, low + (high - low) * share)
        return results, empty

    def drop(self, groups: Ints, size: int) -> None:
        """Forgets the values of these groups; all groups are below ``size``."""
        dropped = np.zeros(size, np.bool_)
        dropped[groups] = True
        keep = ~dropped[self._groups[: self.count]]
        kept = int(np.count_nonzero(keep))
        for array in self.arrays:
            array[:kept] = array[: self.count][keep]
        self.count = kept
        if 4 * kept < len(self._groups) > _SMALLEST:
            self._resize(max(_SMALLEST, 2 * kept))

    def reset(self) -> None:
        """Forgets all values."""
        self.count = 0
        if len(self._groups) > _SMALLEST:
            self._resize(_SMALLEST)

    def relabel(self, renamed: Ints) -> None:
        """Group g is from now on ``renamed[g]``."""
        self._groups[: self.count] = renamed[self._groups[: self.count]]

    # -- as state --------------------------------------------------------------------------------------------

    @property
    def stored_type(self) -> DataType:
        """The type of values as state: strings as such, other distinct values as words."""
        if not self._distinct:
            return DataType.FLOAT64
        return DataType.STRING if self._dtype is DataType.STRING else DataType.INT64

    def rows(self) -> tuple[Ints, NDArray[Any]]:
        """Groups and values; equal distinct values of a group once."""
        groups, values = self._groups[: self.count], self._values[: self.count]
        if not self._distinct:
            return groups.copy(), values.copy()
        order = np.lexsort((values, groups))
        groups, values = groups[order], values[order]
        new = np.ones(len(groups), np.bool_)
        new[1:] = (values[1:] != values[:-1]) | (groups[1:] != groups[:-1])
        return groups[new], values[new].astype(self.stored_type.numpy)

    def add(self, groups: Ints, values: NDArray[Any]) -> None:
        """Takes in rows that ``rows`` gave."""
        self.reserve(len(groups))
        added = slice(self.count, self.count + len(groups))
        self._groups[added], self._values[added] = groups, values
        self.count += len(groups)

    @property
    def nbytes(self) -> int:
        return self._groups.nbytes + self._values.nbytes

    def _resize(self, capacity: int) -> None:
        for name in ("_groups", "_values"):
            old = getattr(self, name)
            resized = np.zeros(capacity, old.dtype)
            resized[: self.count] = old[: self.count]
            setattr(self, name, resized)
