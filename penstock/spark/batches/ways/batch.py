"""A batch as its way gets it, and what its tasks sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from penstock.checkpoints.positions import Progress
from penstock.spark.batches import results
from penstock.spark.batches.clock import Clock
from penstock.spark.batches.job import ShippedJob
from penstock.spark.batches.ways.stage_task import StageTask
from penstock.state.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.spark.frames.batches import FrameBatches


class Sent(NamedTuple):
    """What came to the driver."""

    messages: pa.Table
    in_files: bool  # some of the batch stands in files

    @classmethod
    def of(cls, messages: pa.Table) -> Sent:
        return cls(messages, results.stand_elsewhere(messages.column("tag")))


@dataclass(frozen=True)
class Batch:
    """``frame`` has messages, or the rows of an app's one DataFrame; then there are ``frames``."""

    frame: DataFrame
    frames: FrameBatches | None
    job: ShippedJob
    stages: int  # behind those that read
    manifest: Manifest  # the version that the batch starts from
    before: Progress  # which that has
    ending: bool  # the input is complete: everything closes
    clock: Clock

    def read(self, frame: DataFrame) -> DataFrame:
        """The messages that become of these rows of the batch where they are read; messages stay."""
        return frame if self.frames is None else self.frames.rows(frame, self.job, self.manifest)

    def stage_tasks(self) -> Iterable[StageTask]:
        """What is done behind those that read, in its order."""
        return (StageTask(self.job, stage, self.manifest, self.ending) for stage in range(1, self.stages + 1))

    def collect(self, frame: DataFrame) -> pa.Table:
        """Runs the Spark job of the batch."""
        self.clock.lap("planning")
        table = frame.toArrow()
        self.clock.lap("job")
        return table
