"""Events of a workload made beforehand and copied in, so that a source costs what copying costs.

In the papers a generator has a thread of its own beside the engine. Here making an event would cost more than
all that a query does with it, and the benchmark would compare generators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numba import literal_unroll, njit
from numpy.typing import NDArray

from lab.workloads.mix import LINEAR_ROAD, TAXI, YAHOO
from penstock.app import App
from penstock.connectors.memory.discard import Discard
from penstock.connectors.memory.generator import Fill, Generator
from penstock.connectors.pacing import Rate
from penstock.query.stream.stream import Stream
from penstock.query.types import Schema

_SECOND_US = 1_000_000


@dataclass(frozen=True)
class Stretch:
    """So many events of a workload, after which they begin again, with time going on."""

    events: int
    shifts: Mapping[str, int]  # what a column grows by each time


#: Whole cycles of the data: 3,000 yahoo events repeat, and Linear Road's cars all report in 100,000 records.
#: All together 210 MB, which fits into no cache: events come from main memory, as a stream's do.
_STRETCHES = {
    "yahoo": Stretch(1_200_000, {"ts": 1_200_000}),
    "linear_road": Stretch(1_000_000, {"ts": 900 * _SECOND_US, "time_s": 900}),
    "taxi": Stretch(600_000, {"pickup_datetime": 6 * _SECOND_US, "dropoff_datetime": 6 * _SECOND_US}),
}
_WORKLOADS = {"yahoo": YAHOO, "linear_road": LINEAR_ROAD, "taxi": TAXI}


def add_query(app: App, workload: str, name: str, rate: Rate | None, partitions: int = 1) -> str:
    """Adds one query over prepared events; returns the name of its source."""
    given = _WORKLOADS[workload]
    fill, query = prepared(workload)
    schema = Schema.of(dict(given.fields))
    source = Generator(fill, schema, rate=rate, vocabulary=given.vocabulary, partitions=partitions)
    stream = app.source(f"{name}-events", source, event_time=given.event_time)
    app.sink(name, query(stream), Discard())
    return f"{name}-events"


@lru_cache
def prepared(workload: str) -> tuple[Fill, Callable[[Stream], Stream]]:
    """The prepared events of a workload and the query over them."""
    _, query = _WORKLOADS[workload].made(1, None)
    return replayed(prepared_columns(workload), _STRETCHES[workload]), query


@lru_cache
def prepared_columns(workload: str) -> Mapping[str, NDArray[Any]]:
    """All attributes of the prepared events of a workload."""
    given, stretch = _WORKLOADS[workload], _STRETCHES[workload]
    fill, _ = given.made(1, None)
    columns = {
        field.name: np.empty(stretch.events, field.dtype.numpy) for field in Schema.of(dict(given.fields))
    }
    fill(0, stretch.events, columns, 0)
    return columns


def replayed(columns: Mapping[str, NDArray[Any]], stretch: Stretch) -> Fill:
    """A function that copies the events over and over."""
    names = tuple(columns)
    sources = tuple(columns.values())
    shifts = np.array([stretch.shifts.get(name, 0) for name in names], np.int64)

    def fill(offset: int, n: int, target: dict[str, NDArray[Any]], start: int) -> None:
        pairs = tuple(zip(sources, [target[name] for name in names], strict=True))
        while n:
            cycle, position = divmod(offset, stretch.events)
            count = min(n, stretch.events - position)
            _copy(pairs, shifts * cycle, position, count, start)
            offset, n, start = offset + count, n - count, start + count

    return fill


@njit(nogil=True, cache=True)
def _copy(pairs: Any, shifts: NDArray[np.int64], position: int, count: int, start: int) -> None:
    number = 0
    for pair in literal_unroll(pairs):
        part = pair[1][start : start + count]
        part[:] = pair[0][position : position + count]
        if shifts[number]:
            for i in range(count):
                part[i] += shifts[number]
        number += 1  # noqa: SIM113 (compiled: no enumerate over columns of several types)
