"""The traffic queries as Spark users write them without Penstock: one streaming query each, or one
``foreachBatch`` for all.

Queries are written in SQL and run by Spark's native operators. Window bounds and event times are handed out
as microseconds, as Penstock's sinks do.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.bench.traffic_feed import WINDOW_US, MicroBatch, Row, SinkArrivals
from penstock.workloads.traffic.simulation import FIELDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

SCHEMA = ", ".join(
    f"{name} {({'int64': 'bigint', 'float64': 'double', 'int32': 'int'}).get(kind, kind)}"
    for name, kind in FIELDS
)
#: Spark's default. RocksDB took 2.3 and 2.7 s of processor time where this took 1.9 and 1.8 s, in two rounds
#: of three queries on a busy machine: the state is only a few windows.
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_BOUNDS = "unix_micros(window.start) AS window_start, unix_micros(window.end) AS window_end"
_EVENT = "struct(unix_micros(ts) AS ts, id, x, y, speed, acc, lane, road)"
_POLL_S = 0.1
_QUIET_S = 30.0


@dataclass(frozen=True)
class PlainQuery:
    """One of the replicated traffic queries: ``penstock.workloads.traffic.queries.replicated`` in SQL."""

    name: str
    road: int
    kind: str  # count, speed or top
    k: int = 0

    @classmethod
    def numbered(cls, index: int, roads: int) -> PlainQuery:
        triple, kind = divmod(index, 3)
        name = ("count", "speed", "top")[kind]
        return cls(f"{name}_{triple}", triple % roads, name, 3 + triple % 10)

    def sql(self, cars: str, *, partial: bool = False) -> str:
        """Over a table of cars. ``partial`` results of several tables can be merged.

        Streaming Spark can neither sort nor rank within a window. ``max_by`` with a number keeps the k best
        in a heap, so state and shuffle hold k events a window; a collected list, sorted and cut at the end,
        would hold them all.
        """
        match self.kind:
            case "count":
                columns, keys = "lane, count(*) AS reports", ", lane"
            case "speed" if partial:
                columns, keys = "sum(speed) AS total, count(speed) AS reports", ""
            case "speed":
                columns, keys = "avg(speed) AS speed", ""
            case _:
                columns, keys = f"max_by({_EVENT}, speed, {self.k}) AS best", ""
        return (
            f"SELECT {_BOUNDS}, {columns} FROM {cars} WHERE road = {self.road} "
            f"GROUP BY window(ts, '1 second'){keys}"
        )

    def rows(self, collected: Iterable[Any]) -> Iterator[Row]:
        """The query's rows from Spark's: the k best of a window are a row each, as in Penstock."""
        for row in collected:
            if self.kind != "top":
                yield row.asDict()
                continue
            bounds = {"window_start": row.window_start, "window_end": row.window_end}
            for rank, event in enumerate(row.best, start=1):
                yield {**bounds, "rank": rank, **event.asDict()}


def numbered(names: Sequence[str], roads: int) -> list[PlainQuery]:
    """The first queries, as many as there are names, which must be theirs."""
    queries = [PlainQuery.numbered(index, roads) for index in range(len(names))]
    assert [query.name for query in queries] == list(names)
    return queries


class PlainQueries:
    """Baseline A: a ``StreamingQuery`` for each query, in append mode, as fast as Spark goes."""

    name = "plain"

    def __init__(self, session: SparkSession, roads: int, checkpoints: Path) -> None:
        self._session, self._roads, self._checkpoints = session, roads, checkpoints
        self.running: list[StreamingQuery] = []

    def start(self, folder: Path, queries: Sequence[str], arrivals: SinkArrivals) -> None:
        self._session.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_STORE)
        for query in numbered(queries, self._roads):
            view = f"cars_of_{query.name}"
            stream = _cars(self._session, folder).withWatermark("ts", "0 seconds")
            stream.createOrReplaceTempView(view)
            writer = (
                self._session.sql(query.sql(view))
                .writeStream.outputMode("append")
                .option("checkpointLocation", str(self._checkpoints / query.name))
            )
            self.running.append(writer.foreachBatch(_collecting(query, arrivals)).start())
        wait_for_first_batch(self.running)

    def batches(self) -> list[MicroBatch]:
        return [batch_of(progress) for query in self.running for progress in query.recentProgress]

    def stop(self) -> None:
        stop_when_quiet(self.running)
        self.running = []


class FanOut:
    """Baseline B: one ``foreachBatch`` that keeps the batch and aggregates it once per query.

    What a window has so far is merged in the driver, which costs far less than a state of Spark's would.
    """

    name = "fanout"

    def __init__(self, session: SparkSession, roads: int, checkpoints: Path) -> None:
        self._session, self._roads, self._checkpoints = session, roads, checkpoints
        self.running: list[StreamingQuery] = []

    def start(self, folder: Path, queries: Sequence[str], arrivals: SinkArrivals) -> None:
        # Re-planning has nothing to gain in jobs as small as these.
        self._session.conf.set("spark.sql.adaptive.enabled", "false")
        wanted = numbered(queries, self._roads)
        # As many jobs at once as there are cores: while one is planned, another runs.
        pool = self._pool = ThreadPoolExecutor(self._session.sparkContext.defaultParallelism)
        open_windows = {query.name: OpenWindows(query) for query in wanted}

        def fan_out(frame: DataFrame, batch_id: int) -> None:
            frame.persist()
            # One partition needs no shuffle: a job of one task instead of two stages of two tasks. On a busy
            # machine it took 702 and 1,082 ms of processor time a batch of six queries against 1,318 and
            # 1,398 ms; adaptive planning and collecting as Arrow gained nothing.
            frame.coalesce(1).createOrReplaceTempView("batch")
            session = frame.sparkSession
            reached = session.sql("SELECT unix_micros(max(ts)) AS ts FROM batch").collect()[0].ts

            def aggregate(query: PlainQuery) -> None:
                partial = session.sql(query.sql("batch", partial=True)).collect()
                windows = open_windows[query.name]
                windows.merge(query.rows(partial))
                if reached is not None and (rows := windows.close(reached)):
                    arrivals.add(query.name, rows)

            list(pool.map(aggregate, wanted))
            frame.unpersist()

        writer = _cars(self._session, folder).writeStream.foreachBatch(fan_out)
        self.running = [writer.option("checkpointLocation", str(self._checkpoints / "fanout")).start()]
        wait_for_first_batch(self.running)

    def batches(self) -> list[MicroBatch]:
        return [batch_of(progress) for query in self.running for progress in query.recentProgress]

    def stop(self) -> None:
        stop_when_quiet(self.running)
        self.running = []
        self._pool.shutdown()
        self._session.conf.unset("spark.sql.adaptive.enabled")


@dataclass
class OpenWindows:
    """The windows of one query that have begun and not ended."""

    query: PlainQuery
    _parts: dict[int, list[Row]] = field(default_factory=dict)  # by window_start

    def merge(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._parts.setdefault(row["window_start"], []).append(row)

    def close(self, reached_us: int) -> list[Row]:
        """The rows of all windows that end at or before this event time; they are forgotten."""
        ended = sorted(start for start in self._parts if start + WINDOW_US <= reached_us)
        return [row for start in ended for row in self._whole(start, self._parts.pop(start))]

    def _whole(self, start: int, parts: list[Row]) -> Iterator[Row]:
        bounds = {"window_start": start, "window_end": start + WINDOW_US}
        match self.query.kind:
            case "count":
                for lane in sorted({row["lane"] for row in parts}):
                    reports = sum(row["reports"] for row in parts if row["lane"] == lane)
                    yield {**bounds, "lane": lane, "reports": reports}
            case "speed":
                reports = sum(row["reports"] for row in parts)
                yield {**bounds, "speed": sum(row["total"] for row in parts) / reports}
            case _:
                best = heapq.nlargest(self.query.k, parts, key=lambda row: row["speed"])
                yield from ({**row, "rank": rank} for rank, row in enumerate(best, start=1))


def wait_for_first_batch(queries: Sequence[StreamingQuery]) -> None:
    """Returns when every query has had a batch; raises what ended one."""
    for query in queries:
        while query.lastProgress is None:
            if not query.isActive:
                query.awaitTermination()
            time.sleep(_POLL_S)


def stop_when_quiet(queries: Sequence[StreamingQuery]) -> None:
    """Stops queries that get no more input between two batches: in the middle of one, Spark logs pages."""
    give_up_s = time.time() + _QUIET_S
    for query in queries:
        while query.isActive and query.status["isTriggerActive"] and time.time() < give_up_s:
            time.sleep(_POLL_S)
    for query in queries:
        query.stop()


def batch_of(progress: StreamingQueryProgress) -> MicroBatch:
    """Spark's own account of a batch."""
    parts = {name: float(ms) for name, ms in progress.durationMs.items()}
    began = datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00"))
    return MicroBatch(began.timestamp(), parts.pop("triggerExecution"), parts)


def _cars(session: SparkSession, folder: Path) -> DataFrame:
    return session.readStream.schema(SCHEMA).parquet(str(folder))


def _collecting(query: PlainQuery, arrivals: SinkArrivals) -> Any:
    def collect(frame: DataFrame, batch_id: int) -> None:
        rows = frame.collect()
        if rows:
            arrivals.add(query.name, query.rows(rows))

    return collect
