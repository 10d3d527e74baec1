"""Any Penstock source as a Spark streaming source, whose tasks read position ranges and emit messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.connectors.reader import NodeSource, Positions
from penstock.connectors.sizes import event_bytes
from penstock.query.errors import RunError

#: The columns of a message.
SCHEMA = "target int, tag int, seq bigint, payload binary"
_POSITIONS = "p"  # in Spark's offsets: a position per partition


@dataclass(frozen=True)
class Range:
    """What one batch reads of one partition."""

    partition: int
    start: int
    end: int
    #: Whether the partition has no event behind it.
    final: bool
    #: What the source's ``open_range`` must be told of it.
    hint: Any = None
    #: Of the batch's first range: about how many events wait behind the batch.
    waiting: int = 0
    #: Of the same: by what the source's journal is known again, as far as it leads up to the batch's end.
    mark: str | None = None


class RangeTask(Protocol):
    """What becomes of the events; runs in Spark's Python workers, so it must be easy to pickle."""

    def read(self, source_id: str, ranges: list[Range]) -> Iterator[pa.RecordBatch]:
        """Reads the ranges of one Spark task and gives out messages."""


def register(
    spark: SparkSession,
    name: str,
    source_id: str,
    source: NodeSource,
    task: RangeTask,
    *,
    journal: str | None,
    max_events: int | None,
    max_tasks: int | None = None,
    readers: Callable[[], int | None] | None = None,
    max_bytes: int | None = None,
    keep_batches: int = 0,
) -> str:
    """Makes the source known to Spark; returns the format for ``spark.readStream.format``.

    ``journal`` is the source's folder beside the checkpoint. A batch reads about ``max_events`` events and
    ``max_bytes`` of them at most, None: whatever is there, in at most ``max_tasks`` tasks, None: as many as
    there are cores.
    ``readers`` is asked before each batch whether it is to be fewer. The source keeps what the newest
    ``keep_batches`` have read, for a run that goes back.
    """
    tasks = max_tasks or spark.sparkContext.defaultParallelism
    # The task is opened where it runs: the processes that plan need not load what it needs, a compiler.
    packed: bytes = cloudpickle.dumps(task)  # type: ignore[no-untyped-call]
    stream = StreamOrders(
        source_id, source, packed, journal, max_events, tasks, readers, max_bytes, keep_batches
    )
    # A class of its own, which no module has: so Spark's pickle takes it along with all that it holds.
    kind = type(name, (_StreamSource,), {"stream": stream})
    spark.dataSource.register(kind)
    return name


@dataclass(frozen=True)
class StreamOrders:
    """What the processes of one stream are told."""

    source_id: str
    source: NodeSource
    packed_task: bytes
    journal: str | None
    max_events: int | None
    max_tasks: int
    readers: Callable[[], int | None] | None
    max_bytes: int | None = None
    keep_batches: int = 0


class _StreamSource(DataSource):
    stream: StreamOrders

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(self.stream)


class _Ranges(InputPartition):
    def __init__(self, ranges: list[Range]) -> None:
        super().__init__(None)
        self.ranges = ranges


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans the batches of one run, in a process of its own beside the driver, and reads in the workers."""

    def __init__(self, stream: StreamOrders) -> None:
        self._stream = stream
        # Opened when it is known where the run goes on, and only by the process that plans.
        self._opened: Positions | None = None
        self._ends: deque[list[int]] = deque()  # of the newest batches that have counted
        self._ends_now = False
        self._target: list[int] | None = None  # with the trigger availableNow: where it ends

    def initialOffset(self) -> dict[str, list[int]]:
        return {_POSITIONS: [0] * self._stream.source.partitions}

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._stream.max_events
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._ends_now = True

    def latestOffset(self, start: dict[str, list[int]], limit: ReadLimit) -> dict[str, list[int]]:
        begin = self._checked(start)
        positions = self._positions(begin)
        if self._ends_now and self._target is None:
            self._target = positions.latest(begin, None)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = positions.latest(begin, self._most_events(positions, begin, most))
        if self._target is not None:
            end = [min(a, b) for a, b in zip(end, self._target, strict=True)]
        return {_POSITIONS: end}

    def partitions(self, start: dict[str, list[int]], end: dict[str, list[int]]) -> Sequence[InputPartition]:
        begin, stop = self._checked(start), self._checked(end)
        # A batch that an earlier run planned comes before any question for the latest: pacing goes on
        # behind it.
        positions = self._positions(stop)
        ranges = planned_ranges(positions, begin, stop)
        if ranges:
            ranges[0] = replace(ranges[0], waiting=positions.waiting(stop), mark=positions.mark(stop))
        readers = self._stream.readers
        tasks = (readers() if readers is not None else None) or self._stream.max_tasks
        return [_Ranges(group) for group in grouped(ranges, tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Ranges)
        task: RangeTask = cloudpickle.loads(self._stream.packed_task)
        yield from task.read(self._stream.source_id, partition.ranges)

    def commit(self, end: dict[str, list[int]]) -> None:
        self._ends.append(end[_POSITIONS])
        if len(self._ends) > self._stream.keep_batches and self._opened is not None:
            self._opened.release(self._ends.popleft())

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _most_events(self, positions: Positions, start: Sequence[int], most: int | None) -> int | None:
        """The limits in events, the stricter one counts; None if there is none."""
        limits = [limit for limit in (most or positions.stretch,) if limit is not None]
        if self._stream.max_bytes is not None:
            size = positions.event_bytes(start) or event_bytes(self._stream.source.schema)
            limits.append(max(1, self._stream.max_bytes // size))
        return min(limits, default=None)

    def _positions(self, start: Sequence[int]) -> Positions:
        if self._opened is None:
            self._opened = self._stream.source.positions(self._stream.journal, start)
            final = self._opened.final
            if final is not None and any(a > b for a, b in zip(start, final, strict=True)):
                raise RunError(
                    f"source '{self._stream.source_id}' became shorter: its checkpoint has come to "
                    f"{list(start)}, it now ends at {final}; start with a new checkpoint"
                )
        return self._opened

    def _checked(self, offset: dict[str, list[int]]) -> list[int]:
        source = self._stream.source
        found, wanted = len(offset[_POSITIONS]), source.partitions
        if found < wanted and source.grows:
            return [*offset[_POSITIONS], *[0] * (wanted - found)]
        if found != wanted:
            raise RunError(
                f"source '{self._stream.source_id}' had {found} {'partition' if found == 1 else 'partitions'}"
                f", now {wanted}: its checkpoint does not fit; start with a new checkpoint"
            )
        return offset[_POSITIONS]


def planned_ranges(positions: Positions, start: Sequence[int], end: Sequence[int]) -> list[Range]:
    """What a batch reads: the partitions that go on, and in the first batch those that end there at once."""
    final = positions.final
    at_beginning = not any(start)
    ranges: list[Range] = []
    for partition, (begin, stop) in enumerate(zip(start, end, strict=True)):
        ends = final is not None and stop >= final[partition]
        if stop > begin or (ends and at_beginning):
            hint = positions.describe(partition, begin, stop)
            ranges.append(Range(partition, begin, stop, ends, hint))
    return ranges


def grouped(ranges: Sequence[Range], tasks: int) -> list[list[Range]]:
    """The ranges of each task, about as long in sum; no task is without.

    >>> ranges = [Range(number, 0, end, False) for number, end in enumerate((5, 9, 4))]
    >>> [[one.partition for one in group] for group in grouped(ranges, 2)]
    [[1], [0, 2]]
    """
    groups: list[list[Range]] = [[] for _ in range(min(tasks, len(ranges)))]
    lengths = [0] * len(groups)
    for one in sorted(ranges, key=lambda one: one.start - one.end):
        # by their number where lengths are equal, so that empty ranges do not pile up
        shortest = min(range(len(groups)), key=lambda place: (lengths[place], len(groups[place])))
        groups[shortest].append(one)
        lengths[shortest] += one.end - one.start
    return groups
