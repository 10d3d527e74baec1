"""The way of a large batch of a DataFrame whose rows are all aggregated, with one task: Spark aggregates, and
what is left to do is little, so the driver does it."""

from __future__ import annotations

import pyarrow as pa

from penstock.checkpoints.positions import PartitionProgress, Partitions
from penstock.spark.batches.reports import ReadReport
from penstock.spark.batches.stage_engine import StageEngine
from penstock.spark.batches.ways.batch import Batch, Sent
from penstock.spark.batches.ways.whole import WholeTask
from penstock.spark.native.partial import left_out, state_table


def run(batch: Batch) -> Sent:
    """Merges the groups that Spark makes into the state."""
    frames = batch.frames
    assert frames is not None
    assert frames.prefix.partial is not None
    rows = batch.collect(frames.lowered(batch.frame, batch.before))
    source, step = frames.prefix.source.id, frames.prefix.partial.node
    groups, late, bad = left_out(rows)

    def merge(engine: StageEngine) -> tuple[Partitions, ReadReport]:
        if groups.num_rows:
            table = state_table(groups, engine.groups_schema(step))
            engine.operators[step].merge_state({"groups": table})
        engine.count_late(step, late)
        # Spark tells after the batch how far time has come; before, it was there.
        latest_us = batch.before.sources[source][0].latest_us
        return {source: {0: PartitionProgress(latest_us=latest_us)}}, ReadReport(bad=bad)

    messages = WholeTask(batch.job, batch.manifest).work(merge, 0)
    batch.clock.skip()  # the task has told itself what it took
    return Sent.of(pa.Table.from_batches([messages]))
