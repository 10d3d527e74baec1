"""A batch of a DataFrame source whose first steps Spark does itself: from its rows to messages."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from penstock.memory.edges import START_OF_TIME
from penstock.query.graph import Input, Port, SourceSpec
from penstock.spark.collected import Collected
from penstock.spark.frame_task import FrameTask, WholeFrameTask
from penstock.spark.job import ShippedJob
from penstock.spark.positions import PartitionProgress, Progress
from penstock.spark.prefix import Lowered, Prefix
from penstock.state.manifest import Manifest

#: Rows of a batch from which on it pays to let Spark do the first steps: its own jobs cost more to plan, and
#: what it has seen is known a batch later. Below, a row that crosses into Python costs less than that.
NATIVE_ROWS = 200_000


@dataclass(frozen=True)
class FrameBatches:
    """The batches of an app's one DataFrame source: by which way their rows come to the operators."""

    prefix: Prefix

    def messages(
        self,
        batch: DataFrame,
        job: ShippedJob,
        manifest: Manifest,
        before: Progress,
        *,
        whole: bool,
        expected_rows: int,
    ) -> tuple[DataFrame, Lowered | None]:
        """The messages of a batch, and what Spark will have seen of it once they are collected, if it did
        the first steps.

        ``whole``: one task does all that is left to do, and sends its results.
        """
        prefix = self.prefix
        source = prefix.source
        if not self._is_native(whole, expected_rows):
            if whole:
                return WholeFrameTask(job, source.id, manifest).over(batch), None
            return FrameTask(job, source.id, Input(source.id), True, manifest).over(batch), None
        assert isinstance(source.spec, SourceSpec)
        watermark_us = before.watermark_us(source.id, source.spec.lateness_us)
        lowered = prefix.apply(batch, None if watermark_us == START_OF_TIME else watermark_us)
        partial = None if prefix.partial is None else prefix.partial.node
        if whole:
            return WholeFrameTask(job, source.id, manifest, partial).over(lowered.frame), lowered
        frame = FrameTask(job, source.id, prefix.at, False, manifest, partial).over(lowered.frame)
        if prefix.reads_bad:
            bad = FrameTask(job, source.id, Input(source.id, Port.BAD), False, manifest)
            frame = frame.union(bad.over(prefix.bad(batch)))
        return frame, lowered

    def report(self, lowered: Lowered) -> Collected:
        """What only Spark has seen: the events that it left out."""
        seen = lowered.observed()
        moves = {self.prefix.source.id: {0: PartitionProgress(latest_us=seen.latest_us)}}
        late = {} if self.prefix.partial is None else {self.prefix.partial.node: seen.late}
        return Collected({}, [moves], [{"events": seen.events, "bad": seen.bad, "late": late, "ms": {}}])

    def _is_native(self, whole: bool, expected_rows: int) -> bool:
        prefix = self.prefix
        if expected_rows < NATIVE_ROWS:
            return False
        if whole:  # the one task gets groups, or else it might as well get all rows
            return prefix.partial is not None and not prefix.reads_bad
        return bool(prefix.steps or prefix.partial or prefix.alternatives)
