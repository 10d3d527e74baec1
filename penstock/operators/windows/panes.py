"""Panes: events are kept per key and pane, a stretch that every window holds whole or not at all.

Here is what aggregates and rankings over sliding windows share: which entries of a table of (pane, key words)
make up which windows, which windows a watermark closes, and when a pane is done with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.memory.edges import START_OF_TIME
from penstock.operators.windows.wall_clock import wall_clock
from penstock.query.windows import Sliding
from penstock.state.table import KeyTable

_NO_PANE = (1 << 63) - 1
#: Shares of panes in windows that are worked on together: bounds the memory of closing.
_MOST_AT_ONCE = 1 << 20

Ints = NDArray[np.int64]


class Panes:
    """A table of (pane, key words) and the windows that are open over it. Its times are those of the
    window's clock; watermarks and bounds are not.

    A kernel that adds an entry lowers ``lowest[0]`` to the entry's pane.
    """

    def __init__(self, window: Sliding, width: int) -> None:
        self.window, self._clock = window, wall_clock(window)
        self.table = KeyTable(width + 1)
        self.lowest = np.full(1, _NO_PANE, np.int64)
        self._closed_us = START_OF_TIME

    def closes(self, watermark_us: int) -> bool:
        """Whether the watermark closes any window that holds events."""
        lowest = int(self.lowest[0])
        if lowest == _NO_PANE:
            return False
        first = max(self._first_window(lowest), self._first_open())
        return first * self.window.slide_us + self.window.size_us <= self._clock.wall(watermark_us)

    def closing(self, watermark_us: int) -> Iterator[tuple[Ints, Ints]]:
        """The shares of panes in the windows that close: pairs (entries, numbers of their windows).

        In order of windows, in several portions where there are many; a window is never torn apart.
        """
        window, pane_us = self.window, self.window.pane_us
        entries = self.table.entries
        panes = self.table.words[entries, 0]
        last = (self._clock.wall(watermark_us) - window.size_us) // window.slide_us
        if window.is_tumbling and len(panes) <= _MOST_AT_ONCE:  # a pane is a window
            closing = panes <= last
            if not closing.all():
                entries, panes = entries[closing], panes[closing]
            order = np.argsort(panes, kind="stable")
            yield entries[order], panes[order]
            return
        order = np.argsort(panes, kind="stable")
        entries, panes = entries[order], panes[order]
        windows = self._windows_over(panes, last)
        starts = windows * (window.slide_us // pane_us)
        low = np.searchsorted(panes, starts)
        high = np.searchsorted(panes, starts + window.size_us // pane_us)
        total = np.cumsum(high - low)
        done = 0
        while done < len(windows):
            before = int(total[done - 1]) if done else 0
            until = max(done + 1, int(np.searchsorted(total, before + _MOST_AT_ONCE, side="right")))
            counts = (high - low)[done:until]
            yield entries[ranges(low[done:until], counts)], np.repeat(windows[done:until], counts)
            done = until

    def forget(self, watermark_us: int) -> Ints:
        """Removes the entries whose last window has closed, and says which."""
        window = self.window
        self._closed_us = self._clock.wall(watermark_us)
        entries = self.table.entries
        panes = self.table.words[entries, 0]
        # the last window over a pane starts at or before it; compared as numbers of windows, nothing
        # overflows
        last = panes if window.is_tumbling else panes * window.pane_us // window.slide_us
        done = last < self._first_open()
        removed: Ints
        if done.all():
            self.lowest[0] = _NO_PANE
            self.table.clear()
            removed = entries
        else:
            self.lowest[0] = panes[~done].min()
            removed = entries[done]
            self.table.remove(removed)
        return removed

    def resume(self, watermark_us: int) -> None:
        """What is added was exported at that watermark: windows that end by it have been emitted already,
        though their panes may still be needed.
        """
        self._closed_us = max(self._closed_us, self._clock.wall(watermark_us))

    def reset(self) -> None:
        """Forgets all entries and every watermark."""
        self.table.clear()
        self.lowest[0] = _NO_PANE
        self._closed_us = START_OF_TIME

    def starts(self, windows: Ints) -> Ints:
        """When these windows start."""
        return self._clock.instants(windows * self.window.slide_us)

    def ends(self, windows: Ints) -> Ints:
        """When they end."""
        return self._clock.instants(windows * self.window.slide_us + self.window.size_us)

    @property
    def open_windows(self) -> int:
        """Windows with events that have not closed, counted once per key."""
        if self.window.is_tumbling:
            return len(self.table)
        seen: set[tuple[int, ...]] = set()
        for entries, windows in self.closing((1 << 63) - 1):
            seen.update(map(tuple, np.column_stack((windows, self.table.words[entries, 1:])).tolist()))
        return len(seen)

    def _first_window(self, pane: int) -> int:
        window = self.window
        return -((window.size_us - (pane + 1) * window.pane_us) // window.slide_us)

    def _first_open(self) -> int:
        return (self._closed_us - self.window.size_us) // self.window.slide_us + 1

    def _windows_over(self, panes: Ints, last: int) -> Ints:
        """All windows up to number ``last``, not yet closed, that hold at least one of these (sorted)
        panes.
        """
        window = self.window
        distinct = panes[np.append(True, panes[1:] != panes[:-1])[: len(panes)]]
        first_of = -((window.size_us - (distinct + 1) * window.pane_us) // window.slide_us)
        first_of = np.maximum(first_of, _as_int64(self._first_open()))
        last_of = np.minimum(distinct * window.pane_us // window.slide_us, _as_int64(last))
        # both grow with the pane: what earlier panes reached is left out
        reached = np.concatenate(([np.iinfo(np.int64).min], last_of[:-1] + 1))
        first_of = np.maximum(first_of, reached)
        return ranges(first_of, np.maximum(last_of - first_of + 1, 0))


def ranges(starts: NDArray[Any], counts: NDArray[Any]) -> Ints:
    """``starts[0], starts[0] + 1, ...`` (``counts[0]`` of them), then those of the next, and so on.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(counts) - counts
    listed: Ints = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
    return listed


def _as_int64(value: int) -> int:
    return max(-(1 << 63), min(value, (1 << 63) - 1))
