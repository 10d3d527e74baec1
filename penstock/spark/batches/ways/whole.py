"""The way of one source and one task: that task reads and does everything; nothing is shuffled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from penstock.checkpoints.positions import Partitions, Progress
from penstock.spark.batches.clock import Clock
from penstock.spark.batches.job import ShippedJob
from penstock.spark.batches.messages import SPARK_SCHEMA
from penstock.spark.batches.reports import ReadReport, StateReport, TaskReport
from penstock.spark.batches.stage_engine import StageEngine
from penstock.spark.batches.ways import task_state
from penstock.spark.batches.ways.batch import Batch, Sent
from penstock.spark.batches.ways.stage_zero import Feed, sent
from penstock.state.manifest import Manifest


def run(batch: Batch) -> Sent:
    """Messages have been made by the task that read them; a DataFrame's rows are taken by one task here."""
    if batch.ending:
        frame = batch.frame.mapInArrow(WholeTask(batch.job, batch.manifest), SPARK_SCHEMA)
    else:
        frame = batch.frame if batch.frames is None else batch.read(batch.frame.coalesce(1))
    return Sent.of(batch.collect(frame))


@dataclass(frozen=True)
class WholeTask:
    """A batch that one task works on alone: no event leaves the process."""

    job: ShippedJob
    before: Manifest

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batch that closes everything; what it is given says nothing."""
        context = TaskContext.get()
        assert context is not None
        if any(batch.num_rows for batch in batches):
            yield self.work(nothing, context.taskAttemptId(), ending=True)

    def work(self, feed: Feed, attempt: int, *, ending: bool = False) -> pa.RecordBatch:
        """Feeds the operators, closes what the watermark passes, and writes the next version of the state."""
        clock = Clock()
        before = Progress.from_json(self.before.progress)
        local = self.job.here()
        engine = local.whole()
        stages = engine.stages
        clock.lap("build")
        with local.at_work(engine, ending=ending):
            base = task_state.load(local, engine, self.before, before, 0)
            clock.lap("state_load")
            moves, read = feed(engine)
            after = before.advanced([moves])
            outlets = [
                (outlet, task_state.watermark(stages, after, frozenset((name,))))
                for name, vertex in engine.sources.items()
                for outlet in vertex.outlets
            ]
            if ending:
                engine.engine.end([outlet for outlet, _ in outlets])
            else:
                engine.engine.advance(outlets)
            messages = engine.take(np.zeros(1, np.int32), 0, 0)
            degrees = engine.degrees()
            clock.lap("engine")
            state = StateReport()
            if not ending:
                state = task_state.store(local, engine, self.before, before, 0, attempt, base)
        clock.lap("state_write")
        report = TaskReport(
            ms=clock.ms,
            busy_ns=local.measured(engine),
            degrees=degrees,
            read=read,
            left_out=engine.left_out(),
            state=state,
        )
        return sent(messages, engine, moves, report, tasks=1, home=0, seq=0)


def nothing(engine: StageEngine) -> tuple[Partitions, ReadReport]:
    """The feed of a batch without events."""
    return {}, ReadReport()
