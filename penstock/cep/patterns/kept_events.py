"""Kept events: the columns of events that some run has bound, and their places in the order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.cep.patterns import machine_layout as m
from penstock.memory.layout import ORDER, SUB, TIME, Columns, Layout
from penstock.operators.run.system_columns import system_column

Ints = NDArray[np.int64]


class KeptEvents:
    """Events by row number, in arrays that have room for more than ``count``; numbers change in ``keep``."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.count = 0
        self.columns: Columns = layout.allocate(0)
        self.rows: Ints = np.zeros((0, 4), np.int64)  # time, order, sub, and whether it is consumed

    def add(self, columns: Columns, count: int) -> int:
        """Adds events at the end; returns the number of the first."""
        rows = np.zeros((count, 4), np.int64)
        for place, name in ((m.R_TIME, TIME), (m.R_ORDER, ORDER), (m.R_SUB, SUB)):
            rows[:, place] = system_column(self._layout, name, columns, 0, count)
        base, self.count = self.count, self.count + count
        if base == 0:  # nothing is kept: the arrays are as good as copies of them
            self.columns, self.rows = columns, rows
            return 0
        room = len(self.rows)
        if self.count > room:
            room = max(2 * room, self.count)
            self.columns = tuple(_lengthened(column, base, room) for column in self.columns)
            self.rows = _lengthened(self.rows, base, room)
        for kept, added in zip(self.columns, columns, strict=True):
            kept[base : self.count] = added
        self.rows[base : self.count] = rows
        return base

    def keep(self, used: NDArray[np.bool_]) -> Ints:
        """Drops all events but those; returns the new numbers of the others, by their old ones."""
        kept = np.flatnonzero(used)
        self.count = len(kept)
        self.columns = tuple(column[kept] for column in self.columns)
        self.rows = self.rows[kept]
        return np.cumsum(used) - 1

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + sum(column.nbytes for column in self.columns)


def _lengthened(array: NDArray[Any], count: int, room: int) -> NDArray[Any]:
    longer = np.zeros((room, *array.shape[1:]), array.dtype)
    longer[:count] = array[:count]
    return longer
