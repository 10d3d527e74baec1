"""What the toll query does with every event as one hand-written loop, after copying every attribute in: the
limit of the benchmark.

A car's reports per segment and minute are counted once, for mean speeds and for the number of cars; those of
cars that stand still once more, per position and 30 seconds. What happens once a minute is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import literal_unroll, njit
from numpy.typing import NDArray

_SLOTS = 1 << 18  # entries of a minute fill a third
_MINUTE_US, _PANE_US = 60_000_000, 30_000_000
_READ = ("ts", "type", "vid", "speed", "xway", "lane", "dir", "seg", "pos")


class FusedLinearRoad:
    """The tables of the loop, for one thread. An entry of another minute counts as none."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], block_events: int) -> None:
        blocks = {name: np.zeros(block_events, column.dtype) for name, column in columns.items()}
        self._pairs = tuple((columns[name], blocks[name]) for name in columns)
        self._read = tuple(blocks[name] for name in _READ)
        self._size = len(columns["vid"])
        self._cars, self._stopped = np.full((2, _SLOTS, 2), -1, np.int64)  # (time, key)
        self._sums = np.zeros((_SLOTS, 2), np.int64)  # reports and speeds
        self._counts = np.zeros(_SLOTS, np.int64)

    def run(self) -> int:
        """Takes all prepared events in once; how many were position reports."""
        tables = (self._cars, self._sums, self._stopped, self._counts)
        return int(_ingest(self._pairs, self._size, self._read, tables))


@njit(nogil=True, cache=True)
def _ingest(pairs: Any, size: int, read: Any, tables: Any) -> int:
    counted, start, capacity = 0, 0, len(read[0])
    while start < size:
        n = min(capacity, size - start)
        for pair in literal_unroll(pairs):
            pair[1][:n] = pair[0][start : start + n]
        counted += _count(read, n, tables)
        start += n
    return counted


@njit(nogil=True, cache=True)
def _count(read: Any, n: int, tables: Any) -> int:
    times, types, cars, speeds, roads, lanes, directions, segments, positions = read
    moving, sums, stopped, counts = tables
    counted = 0
    for i in range(n):
        if types[i] != 0:
            continue
        place = (np.int64(roads[i]) * 2 + directions[i]) * 128 + segments[i]
        slot = _slot(moving, times[i] // _MINUTE_US, (place << 32) | np.int64(cars[i]))
        if slot < 0:
            slot = -1 - slot
            sums[slot, 0] = sums[slot, 1] = 0
        sums[slot, 0] += 1
        sums[slot, 1] += speeds[i]
        if speeds[i] == 0 and 1 <= lanes[i] <= 3:
            where = (np.int64(positions[i]) * 4 + lanes[i]) << 32
            slot = _slot(stopped, times[i] // _PANE_US, where | np.int64(cars[i]))
            if slot < 0:
                slot = -1 - slot
                counts[slot] = 0
            counts[slot] += 1
        counted += 1
    return counted


@njit(nogil=True, cache=True)
def _slot(table: Any, time: int, key: int) -> Any:
    """Where the key of that time stands; −1 − the place if it is new there."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64(mixed >> np.uint64(46))
    while table[place, 0] == time:
        if table[place, 1] == key:
            return place
        place = (place + 1) & (_SLOTS - 1)
    table[place, 0] = time
    table[place, 1] = key
    return -1 - place
