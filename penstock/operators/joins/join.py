"""What both joins of two streams share: storing, matching, and writing pairs straight into blocks."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import kernel_of
from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import LATE, ORDER, SUB, TIME, Columns, Layout
from penstock.operators.joins.join_kernels import NOT_STARTED, Ints, match, order
from penstock.operators.joins.join_state import JoinSide
from penstock.operators.run.base import Build, Operator
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.graph import Port
from penstock.query.types import Field
from penstock.state.keys import KeyWords, Words
from penstock.state.tables import StateFormat, StateRows, key_fields, key_words

_PAIRS = 4096  # pairs found at a time, before they are written

_NO_SUBS: Ints = np.zeros(0, np.int64)


class Join(Operator):
    """A symmetric hash join. Pairs are written when the second of the two events arrives.

    All events offered are stored at once; their pairs are written as blocks have room, the rest in ``flush``.
    A null key matches nothing and is not stored.
    """

    def __init__(
        self,
        build: Build,
        on: tuple[tuple[str, str], ...],
        columns: tuple[tuple[str, int, str], ...],
        bucket_us: int,
    ) -> None:
        super().__init__(build)
        self._bucket_us = bucket_us
        self._output = build.outputs.get(Port.MAIN)
        output = self._output or Layout(())
        self._names = [[pair[index] for pair in on] for index in (0, 1)]
        self._words = KeyWords(
            _both(build.inputs[0].field(left), build.inputs[1].field(right)) for left, right in on
        )
        carried = [(name, side, theirs) for name, side, theirs in columns if name in output]
        places = [name for name in (ORDER, SUB) if ORDER in output]
        self.sides = [
            JoinSide(
                layout,
                [theirs for _, side, theirs in carried if side == index]
                + [name for name in places if name in layout],
                self._words.width + 1,
            )
            for index, layout in enumerate(build.inputs)
        ]
        self._copied = [
            copied
            for name, side, theirs in carried
            for copied in _copies(output, name, side, self.sides[side].layout, theirs)
        ]
        keys = key_fields(self._words)
        self.state_formats = tuple(
            StateFormat(name, [*side.kept_fields, *keys])
            for name, side in zip(("left", "right"), self.sides, strict=True)
        )
        self._unmatched: _Batch | None = None
        self._passed: int | None = None  # a watermark whose eviction waits until the batch is matched
        self._match = kernel_of(match)
        self._order = kernel_of(order) if ORDER in output else None
        self._mine, self._theirs, self._windows = (np.zeros(_PAIRS, np.int64) for _ in range(3))

    @abstractmethod
    def reach(self, index: int) -> tuple[int, int, int, int]:
        """Window size and slide (0, 1 without); how far before and after an event of that side to look."""

    @abstractmethod
    def dead_before(self, index: int, watermark_us: int) -> int:
        """The first bucket of that side in which an event may still find a partner."""

    @abstractmethod
    def pair_times(self, left: Ints, right: Ints, windows: Ints) -> Ints:
        """The event times of pairs, given as rows of both sides and numbers of windows."""

    def on_clock(self, times: Ints) -> Ints:
        """The times that events are matched by."""
        return times

    def write_more(self, target: dict[str, NDArray[Any]], windows: Ints) -> None:
        """Fills further columns of the result; ``target`` has where to, by name."""

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        if not self._write_pairs():
            return 0
        self.divert_late(index, columns, start, stop)
        if self.out is None:
            return stop - start
        layout = self.inputs[index]
        rows = None
        if LATE in layout and columns[layout.data(LATE)][start:stop].any():
            rows = np.flatnonzero(~columns[layout.data(LATE)][start:stop])
        keys = self._words.encode(layout, columns, start, stop, self._names[index], rows)
        nulls = self._words.null_rows(keys)
        if nulls.any():
            rows = np.flatnonzero(~nulls) if rows is None else rows[~nulls]
            keys = keys[~nulls]
        if len(keys):
            assert layout.time is not None
            times = columns[layout.data(layout.time)][start:stop]
            times = np.ascontiguousarray(times) if rows is None else times[rows]
            times = self.on_clock(times)
            bucketed = self._bucketed(keys, times)
            first = self.sides[index].add(columns, start, stop, rows, bucketed)
            if len(self.sides[1 - index]):
                place = np.array([0, NOT_STARTED, NOT_STARTED, NOT_STARTED], np.int64)
                # The times are copied: what was consumed may be overwritten before all pairs are written.
                self._unmatched = _Batch(index, bucketed, times.copy(), first, place)
                self._write_pairs()
        return stop - start

    def _bucketed(self, keys: Words, times: Ints) -> Words:
        bucketed = np.empty((len(keys), keys.shape[1] + 1), np.int64)
        bucketed[:, :-1] = keys
        np.floor_divide(times, self._bucket_us, out=bucketed[:, -1])
        return bucketed

    def on_watermark(self, watermark_us: int) -> None:
        self._passed = watermark_us
        self._write_pairs()

    def flush(self) -> bool:
        return super().flush() and self._write_pairs()

    @property
    def has_ready_rows(self) -> bool:
        return self._unmatched is not None or super().has_ready_rows

    def _state_rows(self) -> list[StateRows]:
        tables: list[StateRows] = []
        for side in self.sides:
            columns, words = side.rows()
            tables.append(((*columns, *self._words.decode(words)), self._key_hash(words)))
        return tables

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        for side, table, columns in zip(self.sides, self.state_formats, rows, strict=True):
            words = key_words(self._words, table.layout, columns)
            kept = columns[: len(side.layout.dtypes) - 1]
            # Pairs among these are written already: they are stored and not matched.
            side.restore(kept, self._bucketed(words, self.on_clock(kept[side.time])))

    def reset(self) -> None:
        super().reset()
        for side in self.sides:
            side.clear()
        self._unmatched = self._passed = None

    @cached_property
    def _key_hash(self) -> KeyHash:
        return KeyHash(self._words, self.strings)

    @property
    def state_bytes(self) -> int:
        return sum(side.bytes for side in self.sides)

    def _write_pairs(self) -> bool:
        """Goes on matching the batch at hand; False if the outlet has no room for its next pairs."""
        batch = self._unmatched
        if batch is not None and not self._write_pairs_of(batch):
            return False
        self._unmatched = None
        if self._passed is not None:
            self._evict(self._passed)
            self._passed = None
        return True

    def _evict(self, watermark_us: int) -> None:
        for index, side in enumerate(self.sides):
            side.evict(None if watermark_us >= END_OF_TIME else self.dead_before(index, watermark_us))

    def _write_pairs_of(self, batch: _Batch) -> bool:
        outlet = self.out
        assert outlet is not None
        other = self.sides[1 - batch.index]
        buckets = (self._bucket_us, other.first_bucket, other.last_bucket)
        reach = np.array([*self.reach(batch.index), *buckets], np.int64)
        while batch.place[0] < len(batch.times):
            limit = min(outlet.reserve(), _PAIRS)
            if limit == 0:
                return False
            count = self._match(
                batch.keys,
                batch.times,
                batch.first,
                other.table.arrays,
                other.heads,
                other.nexts,
                self.on_clock(other.times),
                reach,
                batch.place,
                self._mine,
                self._theirs,
                self._windows,
                limit,
            )
            pair = (self._mine[:count], self._theirs[:count])
            left, right = pair if batch.index == 0 else pair[::-1]
            self._write(outlet.columns, outlet.position, left, right, self._windows[:count])
            outlet.commit(count)
        return True

    def _write(self, columns: Columns, position: int, left: Ints, right: Ints, windows: Ints) -> None:
        output = self._output
        assert output is not None
        count = len(left)
        rows = (left, right)
        stored = (self.sides[0].store.arrays, self.sides[1].store.arrays)
        for target, side, source in self._copied:
            part = columns[target][position : position + count]
            if source is None:
                part[:] = False
            else:
                np.take(stored[side][source], rows[side], out=part, mode="clip")
        target_of = {
            name: columns[output.data(name)][position : position + count]
            for name in output.names
            if name.startswith("$") or name in ("window_start", "window_end")
        }
        self.write_more(target_of, windows)
        if TIME in target_of:
            target_of[TIME][:] = self.pair_times(left, right, windows)
        if self._order is not None:
            self._order(*self._places(0), *self._places(1), left, right, count, target_of[ORDER])
        for name in (SUB, LATE):
            if name in target_of:
                target_of[name][:] = 0

    def _places(self, index: int) -> tuple[Ints, Ints, Ints]:
        side = self.sides[index]
        arrays, layout = side.store.arrays, side.layout
        return side.times, arrays[layout.data(ORDER)], arrays[layout.data(SUB)] if SUB in layout else _NO_SUBS


@dataclass
class _Batch:
    """Events that are stored and whose pairs are not all written yet."""

    index: int
    keys: Words
    times: Ints
    first: int  # the row of the first one
    place: Ints  # how far matching has come


def _copies(
    output: Layout, name: str, side: int, stored: Layout, theirs: str
) -> list[tuple[int, int, int | None]]:
    """Which array of the output is which array of which side's store; None: never null there."""
    copies: list[tuple[int, int, int | None]] = [(output.data(name), side, stored.data(theirs))]
    nulls = output.nulls(name)
    if nulls is not None:
        copies.append((nulls, side, stored.nulls(theirs)))
    return copies


def _both(left: Field, right: Field) -> Field:
    """The field that the key columns of both sides, which have the same type, fit into."""
    return Field(left.name, left.dtype, left.nullable or right.nullable)
