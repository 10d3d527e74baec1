"""The ordered buffer: holds events until the watermark passes them, then gives them in order."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import LATE, ORDER, SUB, Columns, Layout


class OrderedBuffer:
    """Events in, in any order; out, in (event time, ``$order``, ``$sub``) order, once none can come before.

    Every batch that arrives is sorted on its own and kept as a run; a release touches only the runs that
    begin before the watermark. Late events are left out.
    """

    __slots__ = ("_arrivals", "_layout", "_runs", "_time", "bytes", "count")

    def __init__(self, layout: Layout) -> None:
        assert layout.time is not None, "the plan gives this input its event time"
        self._layout = layout
        self._time = layout.data(layout.time)
        # A heap of (event time of the first event left, arrival number, its position, the run).
        self._runs: list[tuple[int, int, int, Columns]] = []
        self._arrivals = 0
        self.count = 0
        self.bytes = 0  # what the held runs take; a run is freed as a whole

    def add(self, columns: Columns, start: int, stop: int) -> None:
        """Takes events [start, stop), copied."""
        part = tuple(column[start:stop] for column in columns)
        if LATE in self._layout:
            late = part[self._layout.data(LATE)]
            if late.any():
                part = tuple(column[~late] for column in part)
        if len(part[self._time]) == 0:
            return
        run = _taken(part, _order(self._layout, part))
        heappush(self._runs, (int(run[self._time][0]), self._arrivals, 0, run))
        self._arrivals += 1
        self.count += len(run[self._time])
        self.bytes += _size(run)

    def release(self, before_us: int) -> tuple[Columns, int]:
        """All held events with an event time below ``before_us``, in order, and how many they are.

        ``END_OF_TIME`` releases everything, also an event of that very time.
        """
        runs = self._runs
        parts: list[Columns] = []
        everything = before_us >= END_OF_TIME
        while runs and (runs[0][0] < before_us or everything):
            _, arrival, position, run = runs[0]
            times = run[self._time]
            if everything:
                stop = len(times)
            else:
                stop = position + int(np.searchsorted(times[position:], before_us))
            parts.append(tuple(column[position:stop] for column in run))
            self.count -= stop - position
            if stop < len(times):
                heapreplace(runs, (int(times[stop]), arrival, stop, run))
            else:
                heappop(runs)
                self.bytes -= _size(run)
        if not parts:
            return self._layout.allocate(0), 0
        if len(parts) == 1:
            return parts[0], len(parts[0][self._time])
        merged = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return _taken(merged, _order(self._layout, merged)), len(merged[self._time])

    def clear(self) -> None:
        """Forgets all held events."""
        self._runs.clear()
        self._arrivals = self.count = self.bytes = 0

    def rows(self) -> Columns:
        """Copies of all held events, in order."""
        runs = sorted((arrival, position, run) for _, arrival, position, run in self._runs)
        parts = [tuple(column[position:] for column in run) for _, position, run in runs]
        merged = tuple(
            np.concatenate(arrays) for arrays in zip(self._layout.allocate(0), *parts, strict=True)
        )
        return _taken(merged, _order(self._layout, merged))

    def times(self) -> list[NDArray[np.int64]]:
        """The event times of what is held, run by run."""
        return [run[self._time][position:] for _, _, position, run in self._runs]


def _order(layout: Layout, columns: Columns) -> NDArray[np.int64]:
    """The rows' numbers in (event time, order, sub) order."""
    assert layout.time is not None
    keys: list[NDArray[Any]] = [columns[layout.data(name)] for name in (SUB, ORDER) if name in layout]
    return np.lexsort([*keys, columns[layout.data(layout.time)]])


def _taken(columns: Columns, rows: NDArray[np.int64]) -> Columns:
    return tuple(column[rows] for column in columns)


def _size(columns: Columns) -> int:
    return sum(column.nbytes for column in columns)
