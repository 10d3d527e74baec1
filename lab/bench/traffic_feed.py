"""Traffic in real time for several systems alike: files that appear, results that arrive, and the time
between.

Some frames of the simulation are one Parquet file, and it appears in a watched folder when the first of them
is due, so its events are created when the file appears. A window can be told as soon as the stream has
reached its end. **Result latency** is therefore the time from the creation of the first event at or after a
window's end to the arrival of the window's rows at the sink in the driver. That a window lasts a second is
not part of it; waiting for batches, watermarks and the sink is. Every system is measured so.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lab.bench.measuring.report import median
from penstock.workloads.traffic.settings import TrafficSettings
from penstock.workloads.traffic.simulation import FIELDS, TrafficSimulation

Row = Mapping[str, Any]
WINDOW_US = 1_000_000
_POLL_S = 0.1
_MOST_GROWTH = 1.5  # of latency from the first half of a run to the second
_ARROW_TYPES: dict[str, pa.DataType] = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "int32": pa.int32(),
}
_NUMPY_TYPES: dict[str, type[np.generic]] = {
    "timestamp": np.int64,
    "int64": np.int64,
    "float64": np.float64,
    "int32": np.int32,
}


class TrafficFiles:
    """The first ``seconds`` of traffic, made beforehand: what making events costs burdens nobody."""

    def __init__(
        self, folder: Path, settings: TrafficSettings, seconds: float, frames_per_file: int = 1
    ) -> None:
        self.settings = settings
        self.frames_per_file = frames_per_file
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        simulation = TrafficSimulation(settings)
        self.paths = []
        for number in range(math.ceil(seconds * self.per_s)):
            begin = simulation.rows_before(number * frames_per_file)
            n = simulation.rows_before((number + 1) * frames_per_file) - begin
            columns = {name: np.zeros(n, _NUMPY_TYPES[kind]) for name, kind in FIELDS}
            simulation.fill(begin, n, columns, 0)
            arrays = {name: pa.array(columns[name], type=_ARROW_TYPES[kind]) for name, kind in FIELDS}
            path = folder / f"{number:06d}.parquet"
            pq.write_table(pa.table(arrays), path)
            self.paths.append(path)

    @property
    def events_per_s(self) -> int:
        return self.settings.cars * self.settings.frames_per_second

    @property
    def per_s(self) -> float:
        """Files that appear in a second."""
        return self.settings.frames_per_second / self.frames_per_file


class FileFeed:
    """Lets the files appear in a folder, each when it is due. The first is there from the beginning, so that
    a system can start and compile before time runs."""

    def __init__(self, files: TrafficFiles, folder: Path) -> None:
        self._files, self.folder = files, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._release(0)
        self.released = 1
        self.began_s = math.nan  # the wall clock when event time was 0
        self.late_s = 0.0  # how far behind its time a file came at worst
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traffic-feed", daemon=True)

    def start(self) -> None:
        self.began_s = time.time()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def created_s(self, event_time_us: int) -> float:
        """The wall clock at which the first event at or after this event time was created.

        It is when the event was due, not when its file came: a system that holds the feed up gains nothing.
        """
        settings = self._files.settings
        since_us = event_time_us - settings.base_us
        frame = math.ceil(since_us * settings.frames_per_second / 1_000_000)
        return self.began_s + frame // self._files.frames_per_file / self._files.per_s

    def _run(self) -> None:
        for number in range(1, len(self._files.paths)):
            due_s = self.began_s + number / self._files.per_s
            if self._stopping.wait(max(0.0, due_s - time.time())):
                return
            self._release(number)
            self.released = number + 1
            self.late_s = max(self.late_s, time.time() - due_s)

    def _release(self, number: int) -> None:
        path = self._files.paths[number]
        os.link(path, self.folder / path.name)  # whole at once, and nothing is copied


class SinkArrivals:
    """What came to the sinks, and when: rows by query and window, with the wall clock of their arrival."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.rows: dict[tuple[str, int], list[Row]] = {}  # by query and window_start
        self.at_s: dict[tuple[str, int], float] = {}

    def add(self, query: str, rows: Iterable[Row]) -> None:
        now = time.time()
        with self._lock:
            for row in rows:
                place = (query, int(row["window_start"]))
                self.rows.setdefault(place, []).append(row)
                self.at_s[place] = now  # of a window's rows the last one counts

    def missing(self, places: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        with self._lock:
            return [place for place in places if place not in self.at_s]


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch of one streaming query."""

    began_s: float  # wall clock
    ms: float
    parts_ms: Mapping[str, float]


class System(Protocol):
    """Runs traffic queries over the files in a folder, and tells ``SinkArrivals`` of results."""

    name: str

    def start(self, folder: Path, queries: Sequence[str], arrivals: SinkArrivals) -> None:
        """Starts the queries and returns once each has had its first batch."""
        ...

    def batches(self) -> list[MicroBatch]: ...

    def stop(self) -> None: ...


@dataclass(frozen=True)
class Span:
    """How long one system is run with one number of queries, in seconds."""

    warm_s: float  # the first windows, not measured: compilers are still at work
    measured_s: float
    drain_s: float  # at most so long is waited for the last of the measured windows


@dataclass(frozen=True)
class Measured:
    """What one system did with one number of queries."""

    system: str
    queries: int
    latency_ms: list[float]  # in the order of windows; one per query and window
    missing: int  # windows that had not come when waiting ended: counted with the time until then
    batches: list[MicroBatch]
    arrivals: SinkArrivals
    feed_late_ms: float

    def figures(self) -> dict[str, Any]:
        batch_ms = [batch.ms for batch in self.batches] or [math.nan]
        parts = sorted({part for batch in self.batches for part in batch.parts_ms})
        return {
            "latency_median_ms": self.latency_median_ms,
            "latency_p95_ms": float(np.quantile(self.latency_ms, 0.95)),
            "windows": len(self.latency_ms),
            "windows_missing": self.missing,
            "rows": sum(len(rows) for rows in self.arrivals.rows.values()),
            "batches": len(self.batches),
            "batch_median_ms": median(batch_ms),
            "batch_p95_ms": float(np.quantile(batch_ms, 0.95)),
            "batch_parts_ms": {
                part: median([batch.parts_ms.get(part, 0.0) for batch in self.batches]) for part in parts
            },
            "latency_growth": self.latency_growth,
            "sustained": self.sustained,
            "feed_late_ms": self.feed_late_ms,
        }

    @property
    def latency_median_ms(self) -> float:
        return median(self.latency_ms)

    @property
    def batch_median_ms(self) -> float:
        return median([batch.ms for batch in self.batches]) if self.batches else math.nan

    @property
    def sustained(self) -> bool:
        """Whether the system kept up with the stream: every window came, the last as soon as the first."""
        return self.missing == 0 and self.latency_growth <= _MOST_GROWTH

    @property
    def latency_growth(self) -> float:
        """How much longer the later half of the windows took than the earlier, by their 95th percentiles:
        within a half, windows that end just after a batch began wait longest."""
        half = max(1, len(self.latency_ms) // 2)
        early, late = (
            float(np.quantile(part, 0.95)) for part in (self.latency_ms[:half], self.latency_ms[-half:])
        )
        return late / early


def measure(
    system: System,
    queries: Sequence[str],
    files: TrafficFiles,
    folder: Path,
    span: Span,
    expected: Container[tuple[str, int]],
) -> Measured:
    """Runs the queries over the stream in real time and waits for every window that ends in the span.

    ``expected`` has those queries and windows that have rows at all: a road may be empty for a second.
    """
    feed, arrivals = FileFeed(files, folder), SinkArrivals()
    system.start(feed.folder, queries, arrivals)
    try:
        feed.start()
        first = math.ceil(span.warm_s)
        ends_us = [second * WINDOW_US for second in range(first + 1, first + 1 + round(span.measured_s))]
        places = [(query, end - WINDOW_US) for end in ends_us for query in queries]
        places = [place for place in places if place in expected]
        time.sleep(max(0.0, feed.created_s(ends_us[-1]) - time.time()))
        give_up_s = time.time() + span.drain_s
        missing = places
        while (missing := arrivals.missing(missing)) and time.time() < give_up_s:
            time.sleep(_POLL_S)
        ended_s = time.time()
        batches = system.batches()
    finally:
        feed.stop()
        system.stop()
    began_s = feed.created_s(ends_us[0])
    return Measured(
        system=system.name,
        queries=len(queries),
        latency_ms=[
            1000 * (arrivals.at_s.get(place, ended_s) - feed.created_s(place[1] + WINDOW_US))
            for place in places
        ],
        missing=len(missing),
        batches=[batch for batch in batches if batch.began_s >= began_s],
        arrivals=arrivals,
        feed_late_ms=1000 * feed.late_s,
    )
