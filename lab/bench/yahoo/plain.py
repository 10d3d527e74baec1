"""The Yahoo query in plain Structured Streaming, and the Parquet files that it and Penstock read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lab.bench.plain_traffic import STATE_STORE, batch_of
from lab.bench.traffic_feed import MicroBatch
from lab.workloads.yahoo.data import FIELDS, YahooEvents, YahooSettings
from lab.workloads.yahoo.fused import WINDOW_US, campaign_slots, fused_count
from penstock.query.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Views = dict[tuple[int, int], int]  # by window_start and campaign_id
WARM_BATCHES = 2  # not counted: compilers are still at work
FILES_PER_BATCH = 2  # a task each on two cores
_SCHEMA = ", ".join(f"{name} {'timestamp' if kind == 'timestamp' else 'bigint'}" for name, kind in FIELDS)
_ARROW_TYPES: dict[str, pa.DataType] = {"timestamp": pa.timestamp("us", tz="UTC"), "int64": pa.int64()}
_QUERY = """
    SELECT unix_micros(window.start) AS window_start, campaign_id, count(*) AS views
    FROM (SELECT ts, ad_id FROM yahoo_events WHERE event_type = 0)
    JOIN (SELECT /*+ BROADCAST */ * FROM yahoo_campaigns) USING (ad_id)
    GROUP BY window(ts, '10 seconds'), campaign_id
"""


class YahooFiles:
    """Events as Parquet files of the same size, and the views per window and campaign that are in them.

    The last window may go on after the last event, so that no stream ever closes it.
    """

    def __init__(self, folder: Path, batches: int, rows_per_batch: int, settings: YahooSettings) -> None:
        if rows_per_batch % FILES_PER_BATCH:
            raise ValueError(f"rows_per_batch must be a multiple of {FILES_PER_BATCH}: got {rows_per_batch}")
        self.folder, self.batches, self.rows_per_batch = folder, batches, rows_per_batch
        self.events = YahooEvents(settings)
        folder.mkdir(parents=True, exist_ok=True)
        slots, campaigns = campaign_slots(*self.events.campaign_table())
        rows = rows_per_batch // FILES_PER_BATCH
        last_us = settings.base_us + batches * rows_per_batch * 1_000_000 // settings.events_per_second
        first_window = settings.base_us // WINDOW_US
        counts = np.zeros((last_us // WINDOW_US - first_window + 1, len(campaigns)), np.int64)
        columns = {name: np.zeros(rows, np.int64) for name, _ in FIELDS}
        for number in range(batches * FILES_PER_BATCH):
            self.events.fill(number * rows, rows, columns, 0)
            fused_count(columns["ts"], columns["ad_id"], columns["event_type"], slots, counts, first_window)
            arrays = {name: pa.array(columns[name], type=_ARROW_TYPES[kind]) for name, kind in FIELDS}
            path = folder / f"{number:06d}.parquet"
            pq.write_table(pa.table(arrays), path)
            os.utime(path, (number, number))  # Spark takes the oldest first
        closed = (last_us - 1) // WINDOW_US - first_window
        self.views: Views = {
            ((first_window + window) * WINDOW_US, int(campaigns[slot])): int(counts[window, slot])
            for window, slot in zip(*np.nonzero(counts[:closed]), strict=True)
        }

    def stream(self, session: SparkSession) -> DataFrame:
        """The files as a stream of Spark's, the same number of rows in every batch."""
        reader = session.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", FILES_PER_BATCH)
        return reader.parquet(str(self.folder))

    def check(self, views: Views, system: str) -> None:
        """Raises unless these are the views of all closed windows; those of the last may be there too."""
        last = max(start for start, _ in self.views)
        closed = {place: count for place, count in views.items() if place[0] <= last}
        if closed != self.views:
            wrong = sorted(closed.items() ^ self.views.items())[:3]
            raise PenstockError(f"{system} computes something else: it differs from the files in {wrong}")


@dataclass(frozen=True)
class YahooRun:
    """One pass over all files."""

    rows_per_s: float
    batches: list[MicroBatch]

    @classmethod
    def of(cls, batches: Sequence[MicroBatch], rows_per_batch: int) -> YahooRun:
        """From the start of the first batch that counts to the end of the last; pauses between them count."""
        counted = list(batches[WARM_BATCHES:])
        elapsed_s = counted[-1].began_s + counted[-1].ms / 1000 - counted[0].began_s
        return cls(len(counted) * rows_per_batch / elapsed_s, counted)

    def parts_ms(self) -> dict[str, float]:
        """The median of each part of a batch."""
        parts = sorted({part for batch in self.batches for part in batch.parts_ms})
        found = {part: [batch.parts_ms.get(part, 0.0) for batch in self.batches] for part in parts}
        return {part: float(np.median(values)) for part, values in found.items()}

    @property
    def batch_median_ms(self) -> float:
        return float(np.median([batch.ms for batch in self.batches]))


def run_plain(session: SparkSession, files: YahooFiles, checkpoint: Path) -> YahooRun:
    """Filter, broadcast join and windowed count by native operators, results kept in the driver's JVM."""
    session.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_STORE)
    ad_ids, campaign_ids = files.events.campaign_table()
    table = pa.table({"ad_id": ad_ids, "campaign_id": campaign_ids})
    session.createDataFrame(table).createOrReplaceTempView("yahoo_campaigns")
    files.stream(session).withWatermark("ts", "0 seconds").createOrReplaceTempView("yahoo_events")
    writer = session.sql(_QUERY).writeStream.outputMode("append").format("memory").queryName("yahoo_views")
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    query.processAllAvailable()
    done = [progress for progress in query.recentProgress if progress.numInputRows]
    query.stop()
    rows = session.table("yahoo_views").collect()
    session.catalog.dropTempView("yahoo_views")
    files.check({(row.window_start, row.campaign_id): row.views for row in rows}, "plain Spark")
    if any(progress.numInputRows != files.rows_per_batch for progress in done):
        raise PenstockError("plain Spark's batches differ in size")
    return YahooRun.of([batch_of(progress) for progress in done], files.rows_per_batch)
