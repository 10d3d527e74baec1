"""Penstock's own columns of a block, with the values that they have where they are not carried."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.memory.layout import LATE, ORDER, SUB, SYSTEM_TYPES, TIME, Columns, Layout


def system_column(layout: Layout, name: str, columns: Columns, start: int, stop: int) -> NDArray[Any]:
    """One of them for events [start, stop); zeros if not carried; ``$time`` may be a visible column."""
    if name == TIME and TIME not in layout and layout.time is not None:
        name = layout.time
    if name in layout:
        return columns[layout.data(name)][start:stop]
    return np.zeros(stop - start, SYSTEM_TYPES[name].numpy)


def system_lists(
    layout: Layout, columns: Columns, start: int, stop: int
) -> Iterable[tuple[int, int, int, bool]]:
    """Time, order, sub and late of events [start, stop) as Python values."""
    lists = [system_column(layout, name, columns, start, stop).tolist() for name in (TIME, ORDER, SUB, LATE)]
    return zip(*lists, strict=True)
