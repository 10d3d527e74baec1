"""The way of several sources and one task: tasks read, and the keys' only task is the driver's process, where
everything comes together anyway."""

from __future__ import annotations

import pyarrow as pa

from penstock.spark.batches.ways.batch import Batch, Sent


def run(batch: Batch) -> Sent:
    """Lets tasks read, and does all the rest."""
    table, in_files = Sent.of(batch.collect(batch.read(batch.frame)))
    for task in batch.stage_tasks():
        table = pa.Table.from_batches([task.run(table.to_batches(), 0, 0)])
    batch.clock.skip()  # the tasks have told themselves what they took
    return Sent(table, in_files or Sent.of(table).in_files)
