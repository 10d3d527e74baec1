"""A source read range by range, in the positions that batches use: between two ranges it is known where it
stands."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock
from typing import Any

from penstock.connectors.reader import BadRecord, NodeSource, Positions, Reader, Resume
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import RunError

#: About how many events a range has: few enough that its end is never far.
RANGE_EVENTS = 1 << 18
_SHORTEST_PAUSE_NS, _LONGEST_PAUSE_NS = 500_000, 20_000_000  # where nothing has come


class SourceRanges:
    """The ranges of all partitions of one source, which several threads may read."""

    def __init__(self, source_id: str, source: NodeSource, journal: str, start: Sequence[int]) -> None:
        self.source = source
        self._positions: Positions = source.positions(journal, start)
        self._planned = list(start)  # how far each partition may be read
        self._lock = Lock()
        final = self._positions.final
        if final is not None and any(a > b for a, b in zip(start, final, strict=True)):
            raise RunError(
                f"source '{source_id}' became shorter: its checkpoint has come to {list(start)}, it now ends "
                f"at {final}; start with a new checkpoint"
            )

    def next(self, partition: int, position: int) -> tuple[int, Any] | None:
        """Where the range that begins here ends, and what ``open_range`` must be told; None: nothing is
        there."""
        with self._lock:
            positions, planned = self._positions, self._planned
            if planned[partition] <= position:
                planned[partition] = positions.latest(planned, RANGE_EVENTS * len(planned))[partition]
            end = planned[partition]
            return (end, positions.describe(partition, position, end)) if end > position else None

    def is_final(self, partition: int, position: int) -> bool:
        """Whether nothing comes behind a position."""
        with self._lock:
            final = self._positions.final
        return final is not None and position >= final[partition]

    def mark(self, start: Sequence[int]) -> str | None:
        """As of ``Positions``."""
        with self._lock:
            return self._positions.mark(start)

    def release(self, before: Sequence[int]) -> None:
        """As of ``Positions``."""
        with self._lock:
            self._positions.release(before)

    def close(self) -> None:
        """Lets go of files, sockets and threads."""
        with self._lock:
            self._positions.close()


class RangeReader(Reader):
    """One partition, a range after the other. While it ``holds`` it begins none."""

    def __init__(
        self,
        ranges: SourceRanges,
        partition: int,
        start: Resume,
        layout: Layout,
        strings: StringPool,
        *,
        finished: bool = False,
    ) -> None:
        super().__init__(partition)
        self.offset = start.offset
        self.stands = start  # where it stood after the last whole range
        self.holds = False
        self._ranges, self._layout, self._strings = ranges, layout, strings
        self._inner: Reader | None = None
        self._reached_us: int | None = None  # the time that the source itself said to have come to
        self._end = 0
        self._finished = finished
        self._bad: list[BadRecord] = []
        self._pause_ns = 0
        self._again_ns = 0  # when to ask again
        # Ranges tell in Unix time when their events came.
        self._clock_ns = time.time_ns() - time.perf_counter_ns()

    @property
    def between(self) -> bool:
        """Whether it stands between two ranges."""
        return self._inner is None

    @property
    def finished(self) -> bool:
        return self._finished

    @property
    def records(self) -> int:
        return self.stands.records if self._inner is None else self._inner.records

    def available(self, now_ns: int) -> int:
        if self._inner is None and not self._begin(now_ns):
            return 0
        assert self._inner is not None
        return max(1, self._inner.available(now_ns))  # what is in a range is due

    def read(self, columns: Columns, start: int, limit: int) -> int:
        inner = self._inner
        if inner is None:
            return 0
        count = inner.read(columns, start, limit)
        self.offset, self._reached_us = inner.offset, inner.reached_us
        self._bad += inner.take_bad()
        if inner.finished:
            self.stands = Resume(self._end, inner.offset, inner.records)
            inner.close()
            self._inner = None
            self._finished = self._ranges.is_final(self.partition, self._end)
        return count

    @property
    def reached_us(self) -> int | None:
        return self._reached_us

    def created_ns(self) -> int | None:
        created_ns = None if self._inner is None else self._inner.created_ns()
        return None if created_ns is None else created_ns - self._clock_ns

    def take_bad(self) -> list[BadRecord]:
        bad, self._bad = self._bad, []
        return bad

    def next_due_ns(self) -> int | None:
        return None if self.finished else self._again_ns

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()

    def _begin(self, now_ns: int) -> bool:
        if self.holds or self._finished or now_ns < self._again_ns:
            return False
        position = self.stands.position
        following = self._ranges.next(self.partition, position)
        if following is None:
            self._finished = self._ranges.is_final(self.partition, position)
            self._pause_ns = min(max(2 * self._pause_ns, _SHORTEST_PAUSE_NS), _LONGEST_PAUSE_NS)
            self._again_ns = now_ns + self._pause_ns
            return False
        self._pause_ns = 0
        self._end, hint = following
        self._inner = self._ranges.source.open_range(
            self.partition, self.stands, self._end, self._layout, self._strings, hint
        )
        return True
