"""What is done where a batch is read, in front of the first routing; and what such a task gives out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from penstock.checkpoints.positions import Partitions, Progress, moves_to_json
from penstock.spark.batches.clock import Clock
from penstock.spark.batches.job import ShippedJob
from penstock.spark.batches.messages import Message, json_bytes, to_batch
from penstock.spark.batches.reports import ReadReport, RoutedReport, TaskReport
from penstock.spark.batches.stage_engine import StageEngine
from penstock.spark.batches.stages import Kind

#: Gives an engine the events of a batch, all or some of which it has yet to work on; says how far the sources
#: have come, and what was read.
Feed = Callable[[StageEngine], tuple[Partitions, ReadReport]]

_BATCH_ID = "streaming.sql.batchId"  # the task property in which Spark says which batch it runs


def stage_zero(
    job: ShippedJob, source_id: str, partition: int, progress: Progress, feed: Feed
) -> pa.RecordBatch:
    """Runs the operators in front of the first routing over a share of a batch that starts from
    ``progress``."""
    clock = Clock()
    local = job.here()
    engine = local.engine(0)
    clock.lap("build")
    owners = np.array(progress.routing, np.int32)
    home = partition % progress.tasks
    seq = (engine.number_of(source_id) << 32) | partition
    with local.at_work(engine):
        engine.begin(owners, home)
        moves, read = feed(engine)
        engine.engine.run()
        messages = engine.take(owners, home, seq)
    clock.lap("read")
    report = TaskReport(
        ms=clock.ms,
        busy_ns=local.measured(engine),
        read=read,
        left_out=engine.left_out(),
        routed=engine.routed() if progress.tasks > 1 else RoutedReport(),
    )
    return sent(messages, engine, moves, report, progress.tasks, home, seq)


def sent(
    messages: list[Message],
    engine: StageEngine,
    moves: Partitions,
    report: TaskReport,
    tasks: int,
    home: int,
    seq: int,
) -> pa.RecordBatch:
    """What a task of stage 0 gives out: its messages, how far the sources have come, and its report."""
    channel = engine.stages.channel(Kind.REPORT, engine.stages.driver)
    said = Message(home, channel, seq, report.to_bytes())
    return to_batch([*messages, *_controls(engine, moves, tasks, seq), said])


def _controls(engine: StageEngine, moves: Partitions, tasks: int, seq: int) -> Iterable[Message]:
    """Tells every task of the next stage, or else the driver, how far the sources have come."""
    payload = json_bytes(moves_to_json(moves))
    channel = engine.stages.channel(Kind.CONTROL, engine.stage + 1)
    targets = range(tasks) if engine.stage < engine.stages.count else range(1)
    return [Message(target, channel, seq, payload) for target in targets]


def batch_id() -> int:
    """The number of the batch that this task belongs to."""
    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty(_BATCH_ID)
    if number is None:
        raise RuntimeError("this task does not belong to a batch of a streaming query")
    return int(number)
