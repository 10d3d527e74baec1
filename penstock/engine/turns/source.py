"""The source operator: reads partitions into blocks, stamps what the system needs, and says how far time
has come."""

from __future__ import annotations

import logging
import time
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed
from penstock.memory.edges import START_OF_TIME, End, LatencyMarker, Mark, Watermark
from penstock.memory.layout import LATE, ORDER, TIME, Columns, Layout
from penstock.operators.run.base import Build, Operator
from penstock.query.graph import Port
from penstock.query.steps import SourceSpec

if TYPE_CHECKING:
    from penstock.connectors.reader import BadRecord, NodeSource, Reader

_log = logging.getLogger(__name__)

_SOURCE_SHIFT, _PARTITION_SHIFT = 56, 44  # $order = source | partition | offset
MARKER_EVERY_MS = 50  # a latency marker, unless the settings say otherwise


class SourceOperator(Operator):
    """Reads partitions of one source in turn: all, or with ``share`` (i, n) every n-th, starting at i.

    The watermark is the least over the partitions of (largest event time seen − lateness). An event is late
    if its time is below its own partition's largest so far − lateness: that depends on the input alone, not
    on where reads were cut.
    """

    def __init__(
        self,
        build: Build,
        batch: int | None = None,
        share: tuple[int, int] = (0, 1),
        marker_every_ms: int = MARKER_EVERY_MS,
    ) -> None:
        super().__init__(build)
        spec = build.node.spec_as(SourceSpec)
        self._lateness_us = spec.lateness_us
        self._ordered = spec.source.ordered
        self._event_time = spec.event_time
        self._number = spec.number
        self._batch = batch  # the most events of one read; for tests that cut at will
        self._source: NodeSource = spec.source  # type: ignore[assignment]
        self._share = share
        self._partitions: list[Partition] = []
        self._next = 0
        self._watermark = START_OF_TIME
        self._next_marker_ns = 0
        self._marker_every_ns = marker_every_ms * 1_000_000
        self._stopping = False
        self.bad_records = 0
        self.finished = False
        self.is_full = False
        self._disorder_told = self._unit_told = False
        self.has_more = False  # by its last turn, which took all that it was allowed to

    def open(self) -> None:
        """Opens the source; called once, before the first turn."""
        layout = self.prepare()
        first, step = self._share
        for position, reader in enumerate(self._source.open(layout, self.strings)):
            if position % step == first:
                self._partitions.append(Partition(reader))
            else:
                reader.close()

    def prepare(self) -> Layout:
        """Gets ready to read, and says into which layout."""
        # Without a MAIN output only the bad records are read, and the good ones must be parsed all the same.
        layout = self.layouts.get(Port.MAIN) or Layout(self.node.schema.fields, self._event_time)
        self._layout = layout
        self._time = layout.data(self._event_time)
        self._scratch: Columns | None = None if self.out is not None else layout.allocate(1024)
        return layout

    def close(self) -> None:
        for partition in self._partitions:
            partition.reader.close()

    def stop(self) -> None:
        """Reads nothing more; the next turn says that the stream ended early."""
        self._stopping = True

    def available(self, now_ns: int) -> int:
        """Events that a turn could read now, plus one while the end has still to be told."""
        if self.finished:
            return 0
        if self._stopping or self._ready:
            return 1
        count, all_finished = 0, True
        for partition in self._partitions:
            if not partition.reader.finished:
                all_finished = False
                count += partition.reader.available(now_ns)
        return 1 if all_finished else count

    def next_due_ns(self) -> int | None:
        """When more may be available, if a partition knows."""
        due = [p.reader.next_due_ns() for p in self._partitions if not p.reader.finished]
        known = [moment for moment in due if moment is not None]
        return min(known) if known else None

    def read(self, limit: int, outbox: deque[Mark]) -> int:
        """Reads at most ``limit`` events into the outlet and puts the marks that follow them into
        ``outbox``."""
        self.is_full = False
        if self._stopping:
            return self._finish(outbox, complete=False)
        now_ns = time.perf_counter_ns()
        taken = 0
        created_ns = now_ns
        burst_ns: int | None = None
        for _ in range(len(self._partitions)):
            partition = self._partitions[self._next]
            self._next = (self._next + 1) % len(self._partitions)
            if partition.reader.finished:
                continue
            due_ns = partition.reader.created_ns()
            if due_ns is not None:
                created_ns = min(created_ns, due_ns)
            if burst_ns is None:
                burst_ns = partition.reader.burst_ns()
            taken += self._read_partition(partition, limit - taken, now_ns)
            if self.is_full or taken >= limit:
                break
        self._advance(outbox)
        if now_ns >= self._next_marker_ns and taken:
            # The marker counts from when it was due or, if the source has fallen behind, from the event it
            # follows. Between two bursts there was no event that could have waited.
            scheduled_ns = self._next_marker_ns or now_ns
            since_ns = min(scheduled_ns, created_ns) if burst_ns is None else min(burst_ns, now_ns)
            outbox.append(LatencyMarker(since_ns, now_ns))
            every_ns = self._marker_every_ns
            self._next_marker_ns = max(scheduled_ns + every_ns, now_ns - every_ns)
        if all(partition.reader.finished for partition in self._partitions):
            self._finish(outbox, complete=True)
        return taken

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        raise TypeError("a source has no input")

    def _read_partition(self, partition: Partition, limit: int, now_ns: int) -> int:
        reader, out, taken = partition.reader, self.out, 0
        limit = min(limit, self._batch or limit)
        while taken < limit:
            if out is not None:
                free = out.reserve()
                if free == 0:
                    self.is_full = True
                    break
                columns, position = out.columns, out.position
            else:
                assert self._scratch is not None
                columns, position, free = self._scratch, 0, len(self._scratch[0])
            if reader.available(now_ns) <= 0:
                break
            offset = reader.offset
            count = reader.read(columns, position, min(limit - taken, free))
            reached_us = reader.reached_us
            if reached_us is not None:
                partition.latest_us = max(partition.latest_us, reached_us + self._lateness_us)
            if count:
                self._stamp(partition, columns, position, count, offset)
                if out is not None:
                    out.commit(count)
            taken += count
            self._keep_bad(reader.take_bad())
            if count == 0:
                break
        return taken

    def _stamp(self, partition: Partition, columns: Columns, start: int, count: int, offset: int) -> None:
        layout, stop = self._layout, start + count
        times = columns[self._time]
        if partition.latest_us == START_OF_TIME:
            self._check_unit(int(times[start]))
        if LATE in layout:
            late = columns[layout.data(LATE)]
            partition.latest_us = _flag_late(times, late, start, stop, partition.latest_us, self._lateness_us)
        elif self._ordered:
            self._check_order(partition, times, start, stop, offset)
        else:
            partition.latest_us = max(partition.latest_us, int(times[start:stop].max()))
        if TIME in layout:
            columns[layout.data(TIME)][start:stop] = times[start:stop]
        if ORDER in layout:
            first = (
                (self._number << _SOURCE_SHIFT) | (partition.reader.partition << _PARTITION_SHIFT) | offset
            )
            columns[layout.data(ORDER)][start:stop] = np.arange(first, first + count)

    def _check_order(
        self, partition: Partition, times: NDArray[np.int64], start: int, stop: int, offset: int
    ) -> None:
        place = _first_disorder(times, start, stop, partition.latest_us)
        if place >= 0 and not self._disorder_told:
            self._disorder_told = True
            _log.warning(
                "source '%s' promises order and breaks it: event %d of partition %d lies before one in front "
                "of it, and windows may miss it; leave out ordered=True, and give app.source a lateness",
                self.id,
                offset + place - start,
                partition.reader.partition,
            )
        latest_us = int(times[stop - 1]) if place < 0 else int(times[start:stop].max())
        partition.latest_us = max(partition.latest_us, latest_us)

    def _check_unit(self, time_us: int) -> None:
        unit = suspected_unit(time_us)
        if unit is not None and not self._unit_told:
            self._unit_told = True
            _log.warning(
                "source '%s': event times look like %s: %d is taken for microseconds since 1970, which is "
                "%s; make microseconds or datetimes of them where the events are made",
                self.id,
                unit,
                time_us,
                _moment(time_us),
            )

    def _advance(self, outbox: deque[Mark]) -> None:
        open_partitions = [p.latest_us for p in self._partitions if not p.reader.finished]
        if not open_partitions or min(open_partitions) == START_OF_TIME:
            return
        reached = min(open_partitions) - self._lateness_us
        if reached > self._watermark:
            self._watermark = reached
            outbox.append(Watermark(reached))

    def _finish(self, outbox: deque[Mark], *, complete: bool) -> int:
        if not self.finished:
            self.finished = True
            outbox.append(End(complete))
        return 0

    def _keep_bad(self, records: list[BadRecord]) -> None:
        self.bad_records += len(records)
        if records and Port.BAD in self.outlets:
            codes = self.strings.codes
            columns: dict[str, NDArray[np.generic]] = {
                "partition": np.array([record.partition for record in records], np.int32),
                "offset": np.array([record.offset for record in records], np.int64),
                "record": codes(record.record for record in records),
                "reason": codes(record.reason for record in records),
            }
            names = self.layouts[Port.BAD].names
            self.emit(tuple(columns[name] for name in names), len(records), Port.BAD)


class Partition:
    """One reader and the largest event time seen from it."""

    __slots__ = ("latest_us", "reader")

    def __init__(self, reader: Reader, latest_us: int = START_OF_TIME) -> None:
        self.reader = reader
        self.latest_us = latest_us


#: From 2000 to 2100: a time that lies there in another unit, and not in microseconds, is one of that unit.
_FIRST_S, _LAST_S = 946_684_800, 4_102_444_800
_UNITS = {"seconds": 1, "milliseconds": 1_000, "nanoseconds": 1_000_000_000}


def suspected_unit(time: int) -> str | None:
    """The unit in which a time is one of our days, if it is none in microseconds.

    >>> suspected_unit(1_700_000_000_000), suspected_unit(1_700_000_000_000_000), suspected_unit(42)
    ('milliseconds', None, None)
    """
    for unit, per_second in _UNITS.items():
        if _FIRST_S <= time // per_second < _LAST_S:
            return unit
    return None


def _moment(time_us: int) -> str:
    try:
        return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us):%Y-%m-%d}"
    except OverflowError:
        return "beyond the year 9999"


@fixed("int64(int64[::1], int64, int64, int64)")
def _first_disorder(times: NDArray[np.int64], start: int, stop: int, latest_us: int) -> int:
    for k in range(start, stop):
        if times[k] < latest_us:
            return k
        latest_us = times[k]
    return -1


@fixed("int64(int64[::1], boolean[::1], int64, int64, int64, int64)")
def _flag_late(
    times: NDArray[np.int64], late: NDArray[np.bool_], start: int, stop: int, latest_us: int, lateness_us: int
) -> int:
    for k in range(start, stop):
        moment = times[k]
        late[k] = latest_us != START_OF_TIME and moment < latest_us - lateness_us
        latest_us = max(latest_us, moment)
    return latest_us
