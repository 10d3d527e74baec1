"""The Yahoo benchmark on Spark: Penstock against plain Structured Streaming over the same Parquet files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.bench.measuring.report import Options, Report, median, progress
from lab.bench.traffic_feed import MicroBatch
from lab.bench.yahoo.plain import FILES_PER_BATCH, Views, YahooFiles, YahooRun, run_plain
from lab.workloads.yahoo.data import FIELDS, YahooEvents, YahooSettings
from lab.workloads.yahoo.query import views_per_campaign
from penstock.app import App
from penstock.connectors.memory.callback import Callback
from penstock.connectors.memory.generator import Generator
from penstock.query.connectors import Source
from penstock.query.errors import PenstockError
from penstock.query.types import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[*]"
ROWS_PER_BATCH = 1_000_000
_EVENTS_PER_SECOND = 100_000  # of event time: a batch is a window's worth, so that windows close all the time
_SESSION = {"spark.driver.memory": "2g"}
_WARM_ROUNDS = (
    3  # Java's compilers take that long: plain Spark was twice as fast in the third as in the first
)
_POLL_S = 0.05


def run(options: Options) -> Report:
    """Both in turn, several times; the ratio is the median of the rounds' ratios."""
    from penstock.spark.session.start import spark_session

    rounds, batches = (9, 40) if options.full else (5, 14)
    settings = YahooSettings(events_per_second=_EVENTS_PER_SECOND)
    with tempfile.TemporaryDirectory(prefix="penstock-yahoo-") as name:
        folder = Path(name)
        progress(f"yahoo: making {batches} batches of {ROWS_PER_BATCH:,} events")
        files = YahooFiles(folder / "events", batches, ROWS_PER_BATCH, settings)
        session = spark_session(MASTER, "penstock-bench-yahoo", _SESSION)
        for number in range(_WARM_ROUNDS):
            run_plain(session, files, folder / f"plain_warm_{number}")
            run_penstock(session, files, folder / f"penstock_warm_{number}")
        plain, ours = [], []
        for number in range(rounds):
            plain.append(run_plain(session, files, folder / f"plain_{number}"))
            ours.append(run_penstock(session, files, folder / f"penstock_{number}"))
            progress(
                f"yahoo: round {number + 1} of {rounds}: Penstock {ours[-1].rows_per_s / 1e6:.2f} M rows/s, "
                f"plain Spark {plain[-1].rows_per_s / 1e6:.2f} M rows/s"
            )
        generated = run_generator(files.events, batches, folder / "generator")
        session.stop()
    return Report(
        name="yahoo",
        settings={
            "on": "spark",
            "master": MASTER,
            "rows_per_batch": ROWS_PER_BATCH,
            "files_per_batch": FILES_PER_BATCH,
            "batches": batches,
            "rounds": rounds,
        },
        figures={
            "rows_per_s": median([run.rows_per_s for run in ours]),
            "plain_rows_per_s": median([run.rows_per_s for run in plain]),
            "generator_rows_per_s": generated.rows_per_s,
            "batch_median_ms": median([run.batch_median_ms for run in ours]),
            "plain_batch_median_ms": median([run.batch_median_ms for run in plain]),
            "batch_parts_ms": ours[-1].parts_ms(),
            "plain_batch_parts_ms": plain[-1].parts_ms(),
            "generator_batch_parts_ms": generated.parts_ms(),
        },
        ratios={
            "throughput_vs_plain": median(
                [one.rows_per_s / other.rows_per_s for one, other in zip(ours, plain, strict=True)]
            )
        },
    )


def run_penstock(session: SparkSession, files: YahooFiles, checkpoint: Path) -> YahooRun:
    """The same files through the same reader of Spark's."""
    from penstock.spark.frames.streams import SparkStream

    source = SparkStream(files.stream(session), bounded=True)
    views: Views = {}
    done = _run(source, files.events, files.batches * files.rows_per_batch, views, checkpoint, None)
    files.check(views, "Penstock")
    return YahooRun.of(done, files.rows_per_batch)


def run_generator(events: YahooEvents, batches: int, checkpoint: Path) -> YahooRun:
    """Penstock's own source: events are made, filtered and counted where they are read."""
    total = batches * ROWS_PER_BATCH
    source = Generator(events.fill, Schema.of(dict(FIELDS)), limit=total, partitions=FILES_PER_BATCH)
    done = _run(source, events, total, {}, checkpoint, ROWS_PER_BATCH)
    return YahooRun.of(done, ROWS_PER_BATCH)


def _run(
    source: Source, events: YahooEvents, total: int, views: Views, checkpoint: Path, batch_events: int | None
) -> list[MicroBatch]:
    """Runs until all rows have been read and gives the batches that read any."""

    def keep(rows: list[dict[str, Any]]) -> None:
        views.update({(row["window_start"], row["campaign_id"]): row["views"] for row in rows})

    app = App("yahoo")
    app.sink(
        "views", views_per_campaign(app.source("events", source, event_time="ts"), events), Callback(keep)
    )
    from penstock.spark.runtime import Spark

    runtime = Spark(MASTER, checkpoint=checkpoint, batch_events=batch_events, settings=_SESSION)
    run = runtime.start(app.graph(), "yahoo")
    while not run.wait(_POLL_S):
        pass
    run.finish()
    read = sum(batch.rows_in for batch in run.batches)
    if read != total:
        raise PenstockError(f"Penstock read {read:,} of {total:,} rows")
    return [
        MicroBatch(batch.started_unix_ms / 1000, batch.batch_ms, batch.parts_ms)
        for batch in run.batches
        if batch.rows_in
    ]
