"""Result latency over the number of queries: Penstock on Spark against plain streaming queries and against
one ``foreachBatch`` for all, on the same Spark, over the same files, in one run."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from lab.bench.measuring.report import Options, Report, progress
from lab.bench.plain_traffic import SCHEMA, STATE_STORE, FanOut, PlainQueries, PlainQuery
from lab.bench.traffic_feed import (
    Measured,
    MicroBatch,
    Row,
    SinkArrivals,
    Span,
    System,
    TrafficFiles,
    measure,
)
from penstock.app import App
from penstock.connectors.files.source import Parquet
from penstock.connectors.memory.callback import Callback
from penstock.connectors.memory.sink import Memory
from penstock.engine.node import Node
from penstock.query.connectors import Source
from penstock.query.errors import PenstockError
from penstock.workloads.traffic.queries import replicated
from penstock.workloads.traffic.settings import TrafficSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[*]"
ROADS = 50  # 150 queries are 50 triples, each about a road of its own
SETTINGS = TrafficSettings(cars=2_000, roads=ROADS, frames_per_second=10, metres_per_car=150.0)
#: Each plain query lists and opens every file for itself: two files a second are fair to them.
FRAMES_PER_FILE = 5
_SESSION = {
    "spark.driver.memory": "2g",
    # A batch of more files than this is listed by a Spark job of its own, 32 by default: slow batches would
    # become slower still.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
}
_RELATIVE_ERROR = 1e-9  # sums of floats depend on their order

#: (system, queries) in the order in which they are run. Spark's compilers are warm for the ones that count,
#: and warmest for Penstock with one query, against which its 150 are held.
_DEFAULT: dict[tuple[str, int], Span] = {
    ("plain", 1): Span(3, 5, 10),
    ("plain", 10): Span(5, 8, 15),
    ("plain", 30): Span(12, 16, 45),
    ("fanout", 30): Span(5, 8, 10),
    ("penstock", 10): Span(5, 5, 8),
    ("penstock", 30): Span(3, 8, 8),
    ("penstock", 150): Span(5, 8, 8),
    ("penstock", 1): Span(3, 8, 8),
}
_FULL: dict[tuple[str, int], Span] = {
    **{("plain", n): Span(30, 60, 60) for n in (1, 10, 30)},
    **{("fanout", n): Span(20, 60, 60) for n in (1, 10, 30)},
    **{("penstock", n): Span(20, 60, 60) for n in (10, 30, 150, 1)},
}


def run(options: Options) -> Report:
    """Every system in turn; the rows of all are checked against the node engine's over the same files."""
    from penstock.spark.session.start import spark_session

    spans = _FULL if options.full else _DEFAULT
    with tempfile.TemporaryDirectory(prefix="penstock-queries-") as name:
        folder = Path(name)
        seconds = max(span.warm_s + span.measured_s + span.drain_s for span in spans.values())
        progress(f"queries: making {seconds:.0f} s of traffic")
        files = TrafficFiles(folder / "frames", SETTINGS, math.ceil(seconds), FRAMES_PER_FILE)
        most = max(queries for _, queries in spans)
        expected = expected_rows(files, most)
        session = spark_session(MASTER, "penstock-bench-queries", _SESSION)
        results: dict[tuple[str, int], Measured] = {}
        for (system, queries), span in spans.items():
            work = folder / f"{system}_{queries}"
            measured = run_system(system, queries, session, files, work, span, expected)
            check_rows(measured, expected)
            results[system, queries] = measured
            progress(
                f"queries: {system} at {queries}: median latency {measured.latency_median_ms:,.0f} ms, "
                f"median batch {measured.batch_median_ms:,.0f} ms"
            )
        shuffles = session.conf.get("spark.sql.shuffle.partitions")
        session.stop()
    return Report(
        name="queries",
        settings={
            "master": MASTER,
            "cars": SETTINGS.cars,
            "roads": SETTINGS.roads,
            "events_per_s": files.events_per_s,
            "files_per_s": files.per_s,
            "shuffle_partitions": shuffles,
            "plain_state_store": STATE_STORE.rsplit(".", 1)[-1],
        },
        figures={f"{system}_{queries}": result.figures() for (system, queries), result in results.items()},
        ratios=ratios(results),
        plots=(_draw(results, options.out / "queries.png"),),
    )


def run_system(
    system: str,
    queries: int,
    session: SparkSession,
    files: TrafficFiles,
    folder: Path,
    span: Span,
    expected: Mapping[tuple[str, int], Sequence[Row]],
) -> Measured:
    """One system with one number of queries, on the running session."""
    if system == "penstock":
        return run_penstock(queries, session, files, folder, span, expected)
    baseline = PlainQueries if system == "plain" else FanOut
    running: System = baseline(session, files.settings.roads, folder / "checkpoints")
    return measure(running, query_names(queries, files), files, folder / "live", span, expected)


def run_penstock(
    queries: int,
    session: SparkSession,
    files: TrafficFiles,
    folder: Path,
    span: Span,
    expected: Mapping[tuple[str, int], Sequence[Row]],
) -> Measured:
    """Penstock over the same folder, read by the same reader of Spark's as the baselines."""
    running = PenstockQueries(session, files.settings.roads, folder / "checkpoint")
    return measure(running, query_names(queries, files), files, folder / "live", span, expected)


class PenstockQueries:
    """All queries as one app on the Spark runtime."""

    name = "penstock"

    def __init__(self, session: SparkSession, roads: int, checkpoint: Path) -> None:
        self._session = session
        self._roads, self._checkpoint = roads, checkpoint
        self._run: Any = None

    def start(self, folder: Path, queries: Sequence[str], arrivals: SinkArrivals) -> None:
        from penstock.spark.frames.streams import SparkStream
        from penstock.spark.runtime import Spark

        frame = self._session.readStream.schema(SCHEMA).parquet(str(folder))
        app = traffic_app(SparkStream(frame), len(queries), self._roads, arrivals)
        runtime = Spark(MASTER, checkpoint=self._checkpoint, settings=_SESSION)
        self._run = runtime.start(app.graph(), "queries")
        while not self._run.batches:  # the first file is there: its batch comes
            if self._run.wait(0.1):
                self._run.finish()
                raise PenstockError("queries: the run on Spark ended before its first batch")

    def batches(self) -> list[MicroBatch]:
        return [
            MicroBatch(batch.started_unix_ms / 1000, batch.batch_ms, batch.parts_ms)
            for batch in self._run.batches
        ]

    def stop(self) -> None:
        self._run.stop()
        self._run.finish()


def traffic_app(source: Source, queries: int, roads: int, arrivals: SinkArrivals) -> App:
    """The replicated queries, each telling ``arrivals`` of its rows."""
    app = App("queries")
    cars = app.source("cars", source, event_time="ts")
    for name, stream in replicated(cars, queries, roads):
        app.sink(name, stream, Callback(Telling(name, arrivals)))
    return app


@dataclass(frozen=True)
class Telling:
    """A query's sink: tells when which of its rows came."""

    name: str
    arrivals: SinkArrivals

    def __call__(self, rows: list[Row]) -> None:
        self.arrivals.add(self.name, rows)


def query_names(queries: int, files: TrafficFiles) -> list[str]:
    return [PlainQuery.numbered(index, files.settings.roads).name for index in range(queries)]


# -- the same results from all -------------------------------------------------------------------------------


def expected_rows(files: TrafficFiles, queries: int) -> dict[tuple[str, int], list[Row]]:
    """The rows by query and window that the node engine finds in all the files."""
    app = App("expected")
    cars = app.source("cars", Parquet(files.folder, ordered=True), event_time="ts")
    sinks = {}
    for name, stream in replicated(cars, queries, files.settings.roads):
        sinks[name] = Memory()
        app.sink(name, stream, sinks[name])
    app.run(on=Node(workers=2))
    found: dict[tuple[str, int], list[Row]] = {}
    for name, sink in sinks.items():
        for row in sink.rows():
            found.setdefault((name, row["window_start"]), []).append(row)
    return found


def check_rows(measured: Measured, expected: Mapping[tuple[str, int], Sequence[Row]]) -> None:
    """Raises unless every window that a system told has the rows that it must have."""
    for place, rows in sorted(measured.arrivals.rows.items()):
        query, start_us = place
        if not same_rows(rows, expected.get(place, ())):
            raise PenstockError(
                f"{measured.system} computes something else: query '{query}', window {start_us} µs: "
                f"got {list(rows)!r:.300}; expected {list(expected.get(place, ()))!r:.300}"
            )


def same_rows(some: Sequence[Row], others: Sequence[Row]) -> bool:
    """Whether two systems' rows of one window are the same, in any order.

    Of the k fastest, those of equal speed may be any of the cars with that speed.
    """
    if len(some) != len(others):
        return False
    if some and "rank" in some[0]:
        ranked = [sorted(rows, key=lambda row: row["rank"]) for rows in (some, others)]
        speeds = [[row["speed"] for row in rows] for rows in ranked]
        if speeds[0] != speeds[1]:
            return False
        last = speeds[0][-1]
        sure = [speed for speed in speeds[0] if speed != last and speeds[0].count(speed) == 1]
        some, others = ([row for row in rows if row["speed"] in sure] for rows in ranked)
    pairs = zip(sorted(some, key=_place), sorted(others, key=_place), strict=True)
    return all(_same(row, other) for row, other in pairs)


def _place(row: Row) -> tuple[int, int]:
    return row.get("lane", 0), row.get("rank", 0)


def _same(row: Row, other: Row) -> bool:
    return row.keys() == other.keys() and all(
        math.isclose(value, other[name], rel_tol=_RELATIVE_ERROR)
        if isinstance(value, float)
        else value == other[name]
        for name, value in row.items()
    )


# -- what comes out ------------------------------------------------------------------------------------------


def ratios(results: Mapping[tuple[str, int], Measured]) -> dict[str, float]:
    """What is promised; NaN where a system was left out, or did not keep up with the stream: the latency of a
    system that falls behind says only how long it was watched."""

    def over(one: tuple[str, int], other: tuple[str, int], *, batches: bool = False) -> float:
        if one not in results or other not in results:
            return math.nan
        if not (results[one].sustained and results[other].sustained):
            return math.nan
        if batches:
            return results[one].batch_median_ms / results[other].batch_median_ms
        return results[one].latency_median_ms / results[other].latency_median_ms

    return {
        "latency_vs_plain_30": over(("plain", 30), ("penstock", 30)),
        "latency_vs_fanout_30": over(("fanout", 30), ("penstock", 30)),
        "growth_150_over_1": over(("penstock", 150), ("penstock", 1), batches=True),
    }


_LABELS = {
    "plain": "plain Spark: a streaming query each",
    "fanout": "plain Spark: one foreachBatch for all",
    "penstock": "Penstock on Spark",
}


def _draw(results: Mapping[tuple[str, int], Measured], path: Path) -> str:
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for system, style in (("plain", "o-"), ("fanout", "s-"), ("penstock", "D-")):
        points = sorted((queries, result) for (name, queries), result in results.items() if name == system)
        if points:
            numbers = [queries for queries, _ in points]
            (line,) = axes.plot(
                numbers, [p.latency_median_ms for _, p in points], style, label=_LABELS[system]
            )
            upper = [p.figures()["latency_p95_ms"] for _, p in points]
            axes.plot(numbers, upper, style[0], mfc="none", color=line.get_color())
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = sorted({queries for _, queries in results})
    axes.set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
    axes.set_xlabel("queries")
    axes.set_ylabel("result latency (ms); hollow: 95th percentile")
    axes.set_title(f"Traffic queries, {SETTINGS.cars * SETTINGS.frames_per_second:,} events/s")
    axes.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return str(path)
