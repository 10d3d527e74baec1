"""A task that reads: what it reads goes to the operators that stand there, all of them or those in front of
the first routing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from penstock.checkpoints.positions import PartitionProgress, Partitions, Progress
from penstock.connectors.reader import NodeSource, Resume
from penstock.engine.seat.inline import BatchSource
from penstock.engine.turns.source import Partition
from penstock.memory.edges import START_OF_TIME
from penstock.query.steps import SourceSpec
from penstock.spark.batches.job import ShippedJob
from penstock.spark.batches.reports import ReadReport
from penstock.spark.batches.stage_engine import StageEngine
from penstock.spark.batches.ways.stage_zero import Feed, batch_id, stage_zero
from penstock.spark.batches.ways.way import Way, choose
from penstock.spark.batches.ways.whole import WholeTask
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore

if TYPE_CHECKING:
    from penstock.spark.batches.stream_source import Range


@dataclass(frozen=True)
class MapTask:
    """What ``read()`` of a Penstock source does in a worker process."""

    job: ShippedJob

    def read(self, source_id: str, ranges: list[Range]) -> Iterator[pa.RecordBatch]:
        """Reads these ranges of a source's partitions as one batch."""
        manifest = StateStore(self.job.here().job.store).before(batch_id())
        context = TaskContext.get()
        assert context is not None
        yield self.run(source_id, ranges, manifest, context.taskAttemptId())

    def run(self, source_id: str, ranges: list[Range], before: Manifest, attempt: int) -> pa.RecordBatch:
        """The same for a batch that starts from the version ``before``."""
        progress = Progress.from_json(before.progress)

        def feed(engine: StageEngine) -> tuple[Partitions, ReadReport]:
            return _read(engine, source_id, ranges, progress)

        first = ranges[0].partition if ranges else 0
        return take_in(self.job, source_id, first, before, progress, attempt, feed)


def take_in(
    job: ShippedJob,
    source_id: str,
    partition: int,
    before: Manifest,
    progress: Progress,
    attempt: int,
    feed: Feed,
) -> pa.RecordBatch:
    """What a task makes of events that it reads, or is handed."""
    if choose(job.here().job.terms, progress.tasks) is Way.WHOLE:
        return WholeTask(job, before).work(feed, attempt)
    return stage_zero(job, source_id, partition, progress, feed)


def _read(
    engine: StageEngine, source_id: str, ranges: list[Range], progress: Progress
) -> tuple[Partitions, ReadReport]:
    """Reads the ranges; how far the partitions have come, and what was read. The last events wait."""
    vertex = engine.sources[source_id]
    operator = vertex.operator
    assert isinstance(operator, BatchSource)
    spec = operator.node.spec_as(SourceSpec)
    assert isinstance(spec.source, NodeSource)
    positions = progress.sources[source_id]
    layout = operator.prepare()
    partitions: list[Partition] = []
    for part in ranges:
        before = positions[part.partition]
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
        events += reader.offset - positions[part.partition].offset
        latest = None if partition.latest_us == START_OF_TIME else partition.latest_us
        moved[part.partition] = PartitionProgress(part.end, reader.offset, reader.records, latest, part.final)
        reader.close()
    mark = next((part.mark for part in ranges if part.mark is not None), None)
    read = ReadReport(
        events,
        operator.bad_records - bad_before,
        sum(part.waiting for part in ranges),
        {} if mark is None else {source_id: mark},
    )
    return {source_id: moved}, read
