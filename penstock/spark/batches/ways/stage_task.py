"""A stage behind a routing, in a task: loads the state of its virtual partitions, takes in what was sent,
closes what the watermark passes, and writes the next version of the state."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from penstock.checkpoints.positions import Progress, moves_from_json
from penstock.spark.batches.clock import Clock
from penstock.spark.batches.job import ShippedJob
from penstock.spark.batches.messages import Message, as_json, from_batches, to_batch
from penstock.spark.batches.reports import RoutedReport, StateReport, TaskReport
from penstock.spark.batches.stage_engine import StageEngine
from penstock.spark.batches.stages import Kind
from penstock.spark.batches.ways import task_state
from penstock.state.manifest import Manifest


@dataclass(frozen=True)
class StageTask:
    """What a task of one stage does with the messages that came for it."""

    job: ShippedJob
    stage: int
    before: Manifest  # the version that the batch starts from
    ending: bool = False  # the input is complete: everything closes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        yield self.run(batches, context.partitionId(), context.taskAttemptId())

    def run(self, batches: Iterable[pa.RecordBatch], task: int, attempt: int) -> pa.RecordBatch:
        """Runs the batch of one task."""
        clock = Clock()
        messages = from_batches(batches)
        clock.lap("receive")
        local = self.job.here()
        stages = local.job.stages
        before = Progress.from_json(self.before.progress)
        engine = local.engine(self.stage)
        clock.lap("build")
        with local.at_work(engine, ending=self.ending):
            base = task_state.load(local, engine, self.before, before, task)
            clock.lap("state_load")
            owners = np.array(before.routing, np.int32)
            began_ns = time.thread_time_ns()
            engine.begin(owners, task)
            passed, moves = _receive(engine, messages)
            after = before.advanced(moves)
            marks = engine.inlet_watermarks(lambda sources: task_state.watermark(stages, after, sources))
            if self.ending:
                engine.engine.run()
                engine.engine.end([outlet for outlet, _ in marks])
            else:
                engine.engine.run()
                engine.engine.advance(marks)
            seq = (1 << 56) | (self.stage << 48) | task
            made = engine.take(owners, task, seq)
            worked_ns = time.thread_time_ns() - began_ns
            degrees = engine.degrees()
            clock.lap("engine")
            state = StateReport()
            if not self.ending:
                state = task_state.store(local, engine, self.before, before, task, attempt, base)
        clock.lap("state_write")
        report = TaskReport(
            self.stage,
            task,
            clock.ms,
            worked_ns if before.tasks > 1 else 0,
            local.measured(engine),
            degrees,
            left_out=engine.left_out(),
            state=state,
            routed=engine.routed() if before.tasks > 1 else RoutedReport(),
        )
        channel = stages.channel(Kind.REPORT, stages.driver)
        made.append(Message(task, channel, seq, report.to_bytes()))
        if self.stage < stages.count or task == 0:
            onwards = stages.channel(Kind.CONTROL, self.stage + 1)
            here = stages.channel(Kind.CONTROL, self.stage)
            made += [Message(task, onwards, m.seq, m.payload) for m in messages if m.tag == here]
        return to_batch([*passed, *made])


def _receive(engine: StageEngine, messages: list[Message]) -> tuple[list[Message], list[Any]]:
    """Takes in what is meant for this stage; returns what is meant for later ones, and how far the sources
    have come."""
    channels = engine.stages.channels
    passed: list[Message] = []
    moves: list[Any] = []
    mine: list[Message] = []
    for message in messages:
        channel = channels[message.tag]
        if channel.stage != engine.stage:
            passed.append(message)
        elif channel.kind is Kind.CONTROL:
            moves.append(moves_from_json(as_json(message.payload)))
        else:
            mine.append(message)
    engine.receive(mine)
    return passed, moves
