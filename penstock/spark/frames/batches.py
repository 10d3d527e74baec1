"""The batches of an app's one DataFrame source: what waits, and how their rows come to the operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.checkpoints.positions import PartitionProgress, Progress
from penstock.checkpoints.spark_log import SparkLog
from penstock.memory.edges import START_OF_TIME
from penstock.query.graph import Input
from penstock.query.steps import SourceSpec
from penstock.spark.batches.job import ShippedJob
from penstock.spark.batches.ways.way import Waiting
from penstock.spark.frames.feed import FrameTask
from penstock.spark.native.prefix import Prefix
from penstock.state.manifest import Manifest

_QUERY_ID = "sql.streaming.queryId"


@dataclass(frozen=True)
class FrameBatches:
    """``log`` is Spark's log of the run, which has what Spark has seen of time."""

    prefix: Prefix
    log: SparkLog

    def stream(self, frame: DataFrame) -> DataFrame:
        """The source's stream as batches want it: only columns that somebody reads, and Spark keeps the
        largest event time."""
        pruned = self.prefix.prune(frame)
        return pruned.withWatermark(self._event_time, "0 seconds")

    def waiting(self, expected_rows: int) -> Waiting:
        """What waits for a batch, and what Spark can do of it."""
        prefix = self.prefix
        return Waiting(
            expected_rows,
            aggregates=prefix.partial is not None,
            filters=bool(prefix.steps or prefix.alternatives),
            tells_bad=(prefix.counts_bad or prefix.never_bad) and not prefix.reads_bad,
        )

    def seen(self, batch_id: int, before: Progress) -> Progress:
        """The progress with what Spark has seen of time before this batch, to the millisecond."""
        reached_ms = self.log.reached_ms(batch_id)
        if reached_ms <= 0:  # none yet, or a time before 1970, which Spark's watermark does not know
            return before
        return before.advanced(
            [{self.prefix.source.id: {0: PartitionProgress(latest_us=1_000 * reached_ms)}}]
        )

    def reached_ms(self, session: SparkSession) -> int:
        """How far time has come for Spark with the batch that this thread has just run. Spark itself asks
        only later, and writes it down when the batch has counted long ago."""
        query: Any = session.streams.get(str(session.sparkContext.getLocalProperty(_QUERY_ID)))
        execution = query._jsq.streamingQuery()
        tracker = execution.watermarkTracker()
        tracker.updateWatermark(execution.lastExecution().executedPlan())
        return int(tracker.currentWatermark())

    def rows(self, batch: DataFrame, job: ShippedJob, manifest: Manifest) -> DataFrame:
        """The messages of a batch of which every row comes to Python."""
        source = self.prefix.source.id
        return FrameTask(job, source, Input(source), True, manifest).over(batch)

    def lowered(self, batch: DataFrame, before: Progress) -> DataFrame:
        """A batch of which Spark has done the first steps; of an aggregate, its groups."""
        spec = self.prefix.source.spec_as(SourceSpec)
        watermark_us = before.watermark_us(self.prefix.source.id, spec.lateness_us)
        return self.prefix.apply(batch, None if watermark_us == START_OF_TIME else watermark_us)

    def filtered(self, lowered: DataFrame, job: ShippedJob, manifest: Manifest) -> DataFrame:
        """The messages of rows that Spark has filtered."""
        return FrameTask(job, self.prefix.source.id, self.prefix.at, False, manifest).over(lowered)

    @property
    def _event_time(self) -> str:
        spec = self.prefix.source.spec_as(SourceSpec)
        return spec.event_time
