"""Yahoo events made beforehand and copied in, all attributes: the source costs what copying costs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lab.workloads.yahoo.data import FIELDS, YahooEvents, YahooSettings

#: A multiple of every cycle in the data (1000 ads, 5 types, 3 kinds), so that a replay goes on
#: where it began.
_PERIOD = 3000


class YahooReplay:
    """A prepared stretch of events, over and over, with event time going on.

    ``size`` events of 56 bytes. The default, 336 MB, fits into no cache: events come from main memory, as a
    stream's do.
    """

    def __init__(self, settings: YahooSettings, size: int = 2_000 * _PERIOD) -> None:
        if size % _PERIOD or size * 1_000_000 % settings.events_per_second:
            raise ValueError(f"size must be a multiple of {_PERIOD} and last whole microseconds: got {size}")
        self.events = YahooEvents(settings)
        self.size = size
        self.columns: dict[str, NDArray[np.int64]] = {name: np.empty(size, np.int64) for name, _ in FIELDS}
        self.events.fill(0, size, self.columns, 0)
        self._ordered = tuple(self.columns[name] for name, _ in FIELDS)
        self._span_us = size * 1_000_000 // settings.events_per_second

    def __reduce__(self) -> tuple[Any, ...]:
        # Made again where it is sent to, once per process: quicker than to send it.
        return _received, (self.events.settings, self.size)

    def fill(self, offset: int, n: int, columns: dict[str, NDArray[np.int64]], start: int) -> None:
        """Copies events [offset, offset + n) of the endless replay."""
        while n:
            cycle, position = divmod(offset, self.size)
            count = min(n, self.size - position)
            target = tuple(columns[name] for name, _ in FIELDS)
            _copy(self._ordered, position, count, target, start, cycle * self._span_us)
            offset, n, start = offset + count, n - count, start + count


@lru_cache(1)
def _received(settings: YahooSettings, size: int) -> YahooReplay:
    return YahooReplay(settings, size)


@njit(nogil=True, cache=True)
def _copy(
    source: tuple[NDArray[np.int64], ...],
    position: int,
    count: int,
    target: tuple[NDArray[np.int64], ...],
    start: int,
    shift_us: int,
) -> None:
    for column in range(len(source)):
        target[column][start : start + count] = source[column][position : position + count]
    if shift_us:
        times = target[0][start : start + count]
        for i in range(count):
            times[i] += shift_us
