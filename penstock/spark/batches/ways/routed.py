"""The way of several tasks: tasks read, and Spark shuffles what they send to the tasks of each stage."""

from __future__ import annotations

from pyspark.sql import functions as fn

from penstock.spark.batches.messages import SPARK_SCHEMA
from penstock.spark.batches.ways.batch import Batch, Sent


def run(batch: Batch, *, filtered: bool) -> Sent:
    """One Spark job of all stages; if ``filtered``, Spark runs the first steps of a DataFrame's rows."""
    if filtered:
        assert batch.frames is not None
        lowered = batch.frames.lowered(batch.frame, batch.before)
        frame = batch.frames.filtered(lowered, batch.job, batch.manifest)
    else:
        frame = batch.read(batch.frame)
    for task in batch.stage_tasks():
        routed = frame.repartitionById(batch.before.tasks, fn.col("target"))
        frame = routed.mapInArrow(task, SPARK_SCHEMA)
    return Sent.of(batch.collect(frame))
