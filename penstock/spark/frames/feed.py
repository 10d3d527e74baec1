"""The task that takes the rows of a DataFrame source: they come from Spark, are stamped and fed to the
operators that stand there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import DataFrame

from penstock.checkpoints.positions import PartitionProgress, Partitions, Progress
from penstock.connectors.reader import RECORD_CHARS
from penstock.memory.arrow import numpy_from_arrow
from penstock.memory.edges import START_OF_TIME
from penstock.memory.layout import LATE, ORDER, TIME, Columns
from penstock.query.graph import Input, Port
from penstock.query.steps import SourceSpec
from penstock.spark.batches.job import ShippedJob
from penstock.spark.batches.messages import SPARK_SCHEMA
from penstock.spark.batches.reports import ReadReport
from penstock.spark.batches.stage_engine import StageEngine
from penstock.spark.batches.ways import task_state
from penstock.spark.batches.ways.reading import take_in
from penstock.spark.batches.ways.stage_zero import batch_id
from penstock.spark.native.prefix import REASON, RECORD
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore

_SOURCE_SHIFT = 56
#: ``$order`` of a row: its number in its partition of the batch comes first, then the partition.
_STRIDE = 4096


@dataclass(frozen=True)
class FrameTask:
    """What ``mapInArrow`` does with the rows of a DataFrame source.

    ``at`` is the output whose rows they are. If ``sees_all``, they are all rows of the source, bad ones too;
    else Spark has filtered them, and the driver learns from Spark how far time has come.
    """

    job: ShippedJob
    source_id: str
    at: Input
    sees_all: bool
    before: Manifest | None = None  # None: that of the batch which Spark says it runs
    names: tuple[str, ...] = ()

    def over(self, frame: DataFrame) -> DataFrame:
        """The messages that become of a DataFrame's rows."""
        names = tuple(frame.columns)
        if not all(name.isidentifier() for name in names):
            # mapInArrow takes a dot in a name for a field of a struct
            frame = frame.toDF(*(f"c{place}" for place in range(len(names))))
        return frame.mapInArrow(replace(self, names=names), SPARK_SCHEMA)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        before = self.before or StateStore(self.job.here().job.store).before(batch_id())
        progress, partition = Progress.from_json(before.progress), context.partitionId()

        def feed(engine: StageEngine) -> tuple[Partitions, ReadReport]:
            rows = _Feed(engine, self.source_id, self.at, self.sees_all, partition, progress)
            for batch in batches:
                rows.take(batch.rename_columns(list(self.names)))
            read = ReadReport(rows.events, rows.bad) if self.sees_all else ReadReport()
            return {self.source_id: {0: rows.moved()}}, read

        yield take_in(self.job, self.source_id, partition, before, progress, context.taskAttemptId(), feed)


class _Feed:
    """Stamps rows and writes them into the outlet of the step that they come from."""

    def __init__(
        self,
        engine: StageEngine,
        source_id: str,
        at: Input,
        sees_all: bool,
        partition: int,
        progress: Progress,
    ) -> None:
        spec = engine.stages.graph[source_id].spec_as(SourceSpec)
        self._engine, self._sees_all = engine, sees_all
        self._outlet = engine.outlet(at)
        self._bad_outlet = engine.outlet(Input(source_id, Port.BAD))
        self._before = progress.sources[source_id][0]
        self._watermark_us = task_state.watermark(engine.stages, progress, frozenset((source_id,)))
        self._order = (spec.number << _SOURCE_SHIFT) | (self._before.offset + partition)
        self._time = spec.event_time
        self._time_field = engine.stages.graph[source_id].schema[spec.event_time]
        self._partition = partition
        self._rows = 0
        self.bad = 0
        self._latest_us = START_OF_TIME

    @property
    def events(self) -> int:
        return self._rows - self.bad

    def take(self, batch: pa.RecordBatch) -> None:
        """Feeds one batch."""
        first = self._rows
        self._rows += batch.num_rows
        numbers: NDArray[np.int64] | None = None
        if REASON in batch.schema.names:
            reasons: Any = batch.column(REASON)
            if reasons.null_count < len(reasons):
                good = reasons.is_null()
                self._set_aside(batch.filter(reasons.is_valid()), first)
                numbers = np.flatnonzero(good.to_numpy(zero_copy_only=False)).astype(np.int64)
                batch = batch.filter(good)
        elif self._sees_all and batch.column(self._time).null_count:
            valid: Any = batch.column(self._time).is_valid()
            self.bad += batch.num_rows
            batch = batch.filter(valid)
            self.bad -= batch.num_rows
            numbers = np.flatnonzero(valid.to_numpy(zero_copy_only=False)).astype(np.int64)
        if batch.num_rows == 0:
            return
        if self._sees_all:
            times, _ = numpy_from_arrow(batch.column(self._time), self._time_field, self._engine.strings)
            self._latest_us = max(self._latest_us, int(times.max()))
        if self._outlet is None:
            return
        self._engine.engine.feed(self._outlet, self._columns(batch, first, numbers), batch.num_rows)

    def moved(self) -> PartitionProgress:
        """How far the source has come, as far as this partition of the batch tells."""
        before = self._before
        latest_us = before.latest_us
        if self._latest_us != START_OF_TIME:
            latest_us = self._latest_us if latest_us is None else max(latest_us, self._latest_us)
        return PartitionProgress(0, before.offset + self._rows * _STRIDE, 0, latest_us)

    def _columns(self, batch: pa.RecordBatch, first: int, numbers: NDArray[np.int64] | None) -> Columns:
        assert self._outlet is not None
        layout, strings = self._outlet.layout, self._engine.strings
        count = batch.num_rows
        columns: list[NDArray[Any]] = []
        for field in layout.fields:
            if field.name == ORDER:
                rows = np.arange(count, dtype=np.int64) if numbers is None else numbers
                columns.append(self._order + (first + rows) * _STRIDE)
            elif field.name in batch.schema.names:
                data, nulls = numpy_from_arrow(batch.column(field.name), field, strings)
                columns.append(data)
                if field.nullable:
                    columns.append(np.zeros(count, np.bool_) if nulls is None else nulls)
            elif field.name == LATE:
                assert layout.time is not None
                times = columns[layout.data(layout.time)]
                columns.append(times < self._watermark_us)
            else:
                assert field.name == TIME, f"a row of a source has no {field.name}"
                columns.append(columns[layout.data(self._time)])
        return tuple(columns)

    def _set_aside(self, batch: pa.RecordBatch, first: int) -> None:
        """Bad records: counted, and sent to whoever reads them."""
        self.bad += batch.num_rows
        if self._bad_outlet is None:
            return
        layout, codes = self._bad_outlet.layout, self._engine.strings.codes
        count = batch.num_rows
        texts: list[Any] = batch.column(RECORD).to_pylist()
        reasons: list[Any] = batch.column(REASON).to_pylist()
        made: dict[str, NDArray[Any]] = {
            "partition": np.full(count, self._partition, np.int32),
            "offset": self._before.offset // _STRIDE + first + np.arange(count, dtype=np.int64),
            "record": codes(str(text)[:RECORD_CHARS] for text in texts),
            "reason": codes(reasons),
        }
        self._engine.engine.feed(self._bad_outlet, tuple(made[name] for name in layout.names), count)
