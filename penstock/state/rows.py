"""Rows that an operator must keep: columns of a layout that grow, shrink and can be picked from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.memory.layout import Columns, Layout

_SMALLEST = 256  # rows; below that a store neither starts nor shrinks


class RowStore:
    """Rows in arrival order, numbered from 0. Numbers change only in ``keep``.

    ``layout`` says which columns are kept. Where rows come from columns with another layout (more fields,
    another order), pass that one as ``source``; fields that it lacks are passed to ``append`` as ``extra``,
    in the order of ``layout``.
    """

    __slots__ = ("_arrays", "_capacity", "_picked", "count", "layout")

    def __init__(self, layout: Layout, source: Layout | None = None) -> None:
        self.layout = layout
        self.count = 0
        self._capacity = _SMALLEST
        self._arrays: list[NDArray[Any]] = [np.zeros(_SMALLEST, dtype) for dtype in layout.dtypes]
        # Where each array comes from: a position in the source's columns, or -1 for the next of ``extra``.
        self._picked: list[int] = []
        for field in layout.fields:
            known = source is None or field.name in source
            origin = layout if source is None else source
            self._picked.append(origin.data(field.name) if known else -1)
            if field.nullable:
                nulls = origin.nulls(field.name) if known else None
                if known and nulls is None:
                    raise ValueError(f"column '{field.name}' must be nullable in the source's layout too")
                self._picked.append(-1 if nulls is None else nulls)

    def __len__(self) -> int:
        return self.count

    def append(
        self,
        columns: Columns,
        start: int,
        stop: int,
        rows: NDArray[np.intp] | None = None,
        extra: Columns = (),
    ) -> None:
        """Adds rows [start, stop) of ``columns``; with ``rows``, those of them only (counted from ``start``).

        ``extra`` arrays have exactly the added rows.
        """
        added = stop - start if rows is None else len(rows)
        self.reserve(added)
        position, following = self.count, iter(extra)
        for array, picked in zip(self._arrays, self._picked, strict=True):
            target = array[position : position + added]
            if picked < 0:
                target[:] = next(following)
            elif rows is None:
                target[:] = columns[picked][start:stop]
            else:
                np.take(columns[picked][start:stop], rows, out=target, mode="clip")
        self.count += added

    def extend(self, columns: Columns) -> None:
        """Adds rows given as columns of the store's own layout."""
        added = len(columns[0])
        self.reserve(added)
        for array, column in zip(self._arrays, columns, strict=True):
            array[self.count : self.count + added] = column
        self.count += added

    def reserve(self, added: int) -> None:
        """Makes room for that many more rows, so that ``arrays`` can be written from ``count`` on."""
        needed = self.count + added
        if needed > self._capacity:
            self._resize(max(needed, 2 * self._capacity))

    @property
    def arrays(self) -> Columns:
        """The arrays with their spare room. A kernel that writes there adds to ``count`` itself."""
        return tuple(self._arrays)

    @property
    def columns(self) -> Columns:
        """All rows, as views: valid until the next change."""
        return tuple(array[: self.count] for array in self._arrays)

    def column(self, name: str) -> NDArray[Any]:
        """The data of one column, as a view: valid until the next change."""
        return self._arrays[self.layout.data(name)][: self.count]

    def gather(self, indices: NDArray[Any]) -> Columns:
        """Copies of the rows with these numbers, in this order."""
        return tuple(array[: self.count][indices] for array in self._arrays)

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Drops every row whose mask is False; the others move together and memory is given back."""
        kept = int(np.count_nonzero(mask))
        if kept == self.count:
            return
        for array in self._arrays:
            array[:kept] = array[: self.count][mask]
        self.count = kept
        if self._capacity > _SMALLEST and 4 * kept < self._capacity:
            self._resize(max(_SMALLEST, 2 * kept))

    def clear(self) -> None:
        self.keep(np.zeros(self.count, np.bool_))

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    def _resize(self, capacity: int) -> None:
        for index, array in enumerate(self._arrays):
            resized = np.zeros(capacity, array.dtype)
            resized[: self.count] = array[: self.count]
            self._arrays[index] = resized
        self._capacity = capacity
