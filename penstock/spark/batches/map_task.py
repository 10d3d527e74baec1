"""Stage 0 in a task: reads a share of the sources, runs the operators in front of the first routing, and
sends what they made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from penstock.checkpoints.positions import PartitionProgress, Partitions, Progress, moves_to_json
from penstock.connectors.reader import NodeSource, Resume
from penstock.engine.seat.inline import BatchSource
from penstock.engine.turns.source import Partition
from penstock.memory.edges import START_OF_TIME
from penstock.query.steps import SourceSpec
from penstock.spark.batches import task_state
from penstock.spark.batches.job import Job, ShippedJob
from penstock.spark.batches.messages import Message, json_bytes, to_batch
from penstock.spark.batches.stage_engine import StageEngine
from penstock.spark.batches.stage_task import TaskClock
from penstock.spark.batches.stages import Kind
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore

if TYPE_CHECKING:
    from penstock.spark.batches.stream_source import Range

#: Gives an engine the events of a batch, all or some of which it has yet to work on; says how far the sources
#: have come, and counts.
Feed = Callable[[StageEngine], tuple[Partitions, dict[str, Any]]]

BATCH_ID = "streaming.sql.batchId"  # the task property in which Spark says which batch it runs


@dataclass(frozen=True)
class MapTask:
    """What ``read()`` of a Penstock source does in a worker process."""

    job: ShippedJob

    def read(self, source_id: str, ranges: list[Range]) -> Iterator[pa.RecordBatch]:
        """Reads these ranges of a source's partitions as one batch."""
        local = self.job.here()
        manifest = StateStore(local.job.store).before(batch_id())
        progress = Progress.from_json(manifest.progress)
        if is_whole(local.job, progress):
            context = TaskContext.get()
            assert context is not None
            yield WholeTask(self.job, manifest).run(source_id, ranges, context.taskAttemptId())
        else:
            yield self.run(source_id, ranges, progress)

    def run(self, source_id: str, ranges: list[Range], progress: Progress) -> pa.RecordBatch:
        """Stage 0 of a batch that starts from ``progress``."""
        clock = TaskClock()
        local = self.job.here()
        engine = local.engine(0)
        clock.lap("build")
        try:
            owners = np.array(progress.routing, np.int32)
            home = ranges[0].partition % progress.tasks
            engine.begin(owners, home)
            moves, counts = _read(engine, source_id, ranges, progress)
            engine.engine.run()
            seq = (engine.number_of(source_id) << 32) | ranges[0].partition
            messages = engine.take(owners, home, seq)
        except BaseException:
            local.discard(engine)
            raise
        clock.lap("read")
        report = counts | engine.left_out() | {"ms": clock.ms} | local.measured(engine)
        return sent(messages, engine, moves, report, progress.tasks, home, seq)


@dataclass(frozen=True)
class WholeTask:
    """A batch that one task reads and works on alone: no event leaves the process, nothing is shuffled."""

    job: ShippedJob
    before: Manifest

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batch that closes everything; what it is given says nothing."""
        context = TaskContext.get()
        assert context is not None
        if any(batch.num_rows for batch in batches):
            yield self.work(_nothing, context.taskAttemptId(), ending=True)

    def run(self, source_id: str, ranges: list[Range], attempt: int) -> pa.RecordBatch:
        """Reads the ranges of a source's partitions as one batch."""
        before = Progress.from_json(self.before.progress)
        return self.work(lambda engine: _read(engine, source_id, ranges, before), attempt)

    def work(self, feed: Feed, attempt: int, *, ending: bool = False) -> pa.RecordBatch:
        """Feeds the operators, closes what the watermark passes, and writes the next version of the state."""
        clock = TaskClock()
        before = Progress.from_json(self.before.progress)
        local = self.job.here()
        engine = local.whole()
        stages = engine.stages
        clock.lap("build")
        try:
            base = task_state.load(local, engine, self.before, before, 0)
            clock.lap("state_load")
            moves, report = feed(engine)
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
            made = engine.take(np.zeros(1, np.int32), 0, 0)
            report |= engine.degrees()
            clock.lap("engine")
            if not ending:
                report |= task_state.store(local, engine, self.before, before, 0, attempt, base)
        except BaseException:
            local.discard(engine)
            raise
        if ending:
            local.discard(engine)  # its operators have closed for good
        clock.lap("state_write")
        report |= engine.left_out() | {"warm": base is not None, "ms": clock.ms}
        report |= local.measured(engine)
        return sent(made, engine, moves, report, tasks=1, home=0, seq=0)


def _nothing(engine: StageEngine) -> tuple[Partitions, dict[str, Any]]:
    return {}, {}


def is_whole(job: Job, progress: Progress) -> bool:
    """Whether a batch runs in one piece: one task has all keys, and that task can read everything."""
    return job.whole is not None and progress.tasks == 1


def _read(
    engine: StageEngine, source_id: str, ranges: list[Range], progress: Progress
) -> tuple[Partitions, dict[str, Any]]:
    """Reads the ranges; how far the partitions have come, and counts. The last events wait."""
    vertex = engine.sources[source_id]
    operator = vertex.operator
    assert isinstance(operator, BatchSource)
    spec = operator.node.spec_as(SourceSpec)
    assert isinstance(spec.source, NodeSource)
    known = progress.sources[source_id]
    layout = operator.prepare()
    partitions: list[Partition] = []
    for part in ranges:
        before = known[part.partition]
        resume = Resume(before.position, before.offset, before.records)
        if part.start != before.position:
            raise RuntimeError(
                f"source '{source_id}' partition {part.partition}: the batch begins at {part.start}, "
                f"the state was made at {before.position}"
            )
        reader = spec.source.open_range(part.partition, resume, part.end, layout, operator.strings, part.hint)
        latest_us = START_OF_TIME if before.latest_us is None else before.latest_us
        partitions.append(Partition(reader, latest_us))
    bad_before = operator.bad_records
    operator.begin(partitions)
    vertex.finished = False
    engine.engine.read(vertex)
    moved: dict[int, PartitionProgress] = {}
    events = 0
    for part, partition in zip(ranges, partitions, strict=True):
        reader = partition.reader
        events += reader.offset - known[part.partition].offset
        latest = None if partition.latest_us == START_OF_TIME else partition.latest_us
        moved[part.partition] = PartitionProgress(part.end, reader.offset, reader.records, latest, part.final)
        reader.close()
    report: dict[str, Any] = {"events": events, "bad": operator.bad_records - bad_before}
    report["waiting"] = sum(part.waiting for part in ranges)
    mark = next((part.mark for part in ranges if part.mark is not None), None)
    report["marks"] = {} if mark is None else {source_id: mark}
    return {source_id: moved}, report


def sent(
    messages: list[Message],
    engine: StageEngine,
    moves: Partitions,
    report: dict[str, Any],
    tasks: int,
    home: int,
    seq: int,
) -> pa.RecordBatch:
    """What a task of stage 0 gives out: its messages, how far the sources have come, and its report."""
    if tasks > 1:
        report = report | engine.routed()
    channel = engine.stages.channel(Kind.REPORT, engine.stages.driver)
    said = Message(home, channel, seq, json_bytes(report))
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
    found = None if context is None else context.getLocalProperty(BATCH_ID)
    if found is None:
        raise RuntimeError("this task does not belong to a batch of a streaming query")
    return int(found)
