"""The whole taxi query as one hand-written loop that copies every attribute in: the benchmark's limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import literal_unroll, njit
from numpy.typing import NDArray

from lab.workloads.taxi.data import VOCABULARY
from lab.workloads.taxi.query import CELL_LATITUDE, CELL_LONGITUDE, CELLS, NORTH, WEST

WINDOW_US = 2_000_000
_RING = 4  # windows that are kept: the loop closes none
_VENDOR = VOCABULARY["vendor_id"].index("VTS")
_READ = (
    "dropoff_datetime",
    "vendor_id",
    "trip_distance",
    "pickup_longitude",
    "pickup_latitude",
    "dropoff_longitude",
    "dropoff_latitude",
)


class FusedTaxi:
    """Trips and miles per cell and window, for one thread."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], block_events: int) -> None:
        blocks = {name: np.zeros(block_events, column.dtype) for name, column in columns.items()}
        self._pairs = tuple((columns[name], blocks[name]) for name in columns)
        self._read = tuple(blocks[name] for name in _READ)
        self._size = len(columns["vendor_id"])
        self.trips = np.zeros((_RING, CELLS * CELLS), np.int64)
        self.miles = np.zeros((_RING, CELLS * CELLS))

    def run(self) -> int:
        """Takes all prepared events in once; how many were counted."""
        return int(_ingest(self._pairs, self._size, self._read, self.trips, self.miles))


@njit(nogil=True, cache=True)
def _ingest(pairs: Any, size: int, read: Any, trips: Any, miles: Any) -> int:
    counted, start, capacity = 0, 0, len(read[0])
    while start < size:
        n = min(capacity, size - start)
        for pair in literal_unroll(pairs):
            pair[1][:n] = pair[0][start : start + n]
        counted += _count(read, n, trips, miles)
        start += n
    return counted


@njit(nogil=True, cache=True)
def _count(read: Any, n: int, trips: Any, miles: Any) -> int:
    times, vendors, distances, from_longitude, from_latitude, to_longitude, to_latitude = read
    counted = window = opens_us = closes_us = 0
    for i in range(n):
        if vendors[i] != _VENDOR or not distances[i] > 1.0:
            continue
        cell = _cell(from_longitude[i], from_latitude[i])
        if cell < 0 or _cell(to_longitude[i], to_latitude[i]) < 0:
            continue
        if times[i] < opens_us or times[i] >= closes_us:
            opens_us = times[i] // WINDOW_US * WINDOW_US
            closes_us = opens_us + WINDOW_US
            window = opens_us // WINDOW_US % _RING
        trips[window, cell] += 1
        miles[window, cell] += distances[i]
        counted += 1
    return counted


@njit(nogil=True, cache=True)
def _cell(longitude: float, latitude: float) -> int:
    row = math.floor((NORTH - latitude) / CELL_LATITUDE)
    column = math.floor((longitude - WEST) / CELL_LONGITUDE)
    if row < 0 or row >= CELLS or column < 0 or column >= CELLS:
        return -1
    return int(row) * CELLS + int(column)
