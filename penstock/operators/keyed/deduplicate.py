"""Deduplicate: the first event per key in the order of event time and, after a while, the next one again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed, kernel_of
from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import Columns, Layout
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.endless import Remembered
from penstock.operators.run.ordered_buffer import OrderedBuffer
from penstock.operators.run.registry import runs
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.graph import Port
from penstock.query.steps import DeduplicateSpec
from penstock.query.types import DataType, Field
from penstock.state.keys import KeyWords, Words
from penstock.state.table import FULL, TABLE_TYPE, KeyTable, TableArrays, hash_key, insert
from penstock.state.tables import StateFormat, StateRows, key_fields, key_words

Ints = NDArray[np.int64]

_FOR_EVER = -1


@runs(DeduplicateSpec)
class Deduplicate(Operator):
    """Holds events until the watermark passes them, then keeps the first of each key.

    With ``within``, an event is a duplicate if the last kept event of its key is less than that long ago;
    keys whose last kept event is older than that are forgotten.
    """

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(DeduplicateSpec)
        layout = build.inputs[0]
        assert layout.time is not None
        self._time = layout.data(layout.time)
        self._within = spec.within_us
        self._held = OrderedBuffer(layout)
        self._words = KeyWords.of(layout, spec.keys)
        self._table = KeyTable(self._words.width)
        self._last_kept: Ints = np.zeros(self._table.capacity, np.int64)  # by entry: when
        # With ``within``: (entries, times) of kept events, in the order of time, to find those to forget.
        self._kept: deque[tuple[Ints, Ints]] = deque()
        self._kept_events = 0
        self.on_growth: Callable[[Deduplicate], None] | None = None  # hears of every longer table
        self._copied = _copies(layout, build.outputs.get(Port.MAIN) or Layout(()))
        self._choose = kernel_of(choose)
        last_kept = Field("$last_kept", DataType.TIMESTAMP)
        self.state_formats = (
            StateFormat("held", layout.fields),
            StateFormat("keys", [last_kept, *key_fields(self._words)]),
        )

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self.divert_late(index, columns, start, stop)
        self._held.add(columns, start, stop)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        columns, count = self._held.release(watermark_us)
        if count:
            self._keep_first(columns, count)
        if self._within is not None:
            self._forget(watermark_us - self._within)

    def _keep_first(self, columns: Columns, count: int) -> None:
        keys = self._words.encode(self.inputs[0], columns, 0, count)
        times = np.ascontiguousarray(columns[self._time])
        rows = np.empty(count, np.int64)
        entries = np.empty(count, np.int64)
        progress = np.zeros(2, np.int64)  # events looked at, events kept
        within = _FOR_EVER if self._within is None else self._within
        while not self._choose(
            self._table.arrays, keys, times, self._last_kept, within, rows, entries, progress
        ):
            self._table.grow()
            self._lengthen()
        kept = rows[: progress[1]]
        if self._within is not None and len(kept):
            self._kept.append((entries[: progress[1]].copy(), times[kept]))
            self._kept_events += len(kept)
        taken = [
            np.zeros(len(kept), dtype) if source is None else columns[source][kept]
            for source, dtype in self._copied
        ]
        self.emit(tuple(taken), len(kept))

    def _forget(self, until_us: int) -> None:
        """Takes out keys whose last kept event is not after ``until_us``."""
        while self._kept:
            entries, times = self._kept[0]
            count = int(np.searchsorted(times, max(until_us, -END_OF_TIME), side="right"))
            if count == 0:
                return
            self._kept_events -= count
            # A key that was kept again since stands further on in the queue.
            over = self._last_kept[entries[:count]] == times[:count]
            self._table.remove(np.unique(entries[:count][over]))
            if count < len(entries):
                self._kept[0] = (entries[count:], times[count:])
                return
            self._kept.popleft()

    def _lengthen(self) -> None:
        longer = np.zeros(self._table.capacity, np.int64)
        longer[: len(self._last_kept)] = self._last_kept
        self._last_kept = longer
        if self.on_growth is not None:
            self.on_growth(self)

    def _state_rows(self) -> list[StateRows]:
        held = self._held.rows()
        held_keys = self._words.encode(self.inputs[0], held, 0, len(held[0]))
        entries = self._table.entries
        keys = self._table.words[entries]
        return [
            (held, self._key_hash(held_keys)),
            ((self._last_kept[entries], *self._words.decode(keys)), self._key_hash(keys)),
        ]

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        held, keys = rows
        self._held.add(held, 0, len(held[0]))
        words = key_words(self._words, self.state_formats[1].layout, keys)
        before = len(self._table)
        entries = self._table.insert(words)
        if len(self._table) != before + len(words):
            raise self._given_twice()
        self._lengthen()
        self._last_kept[entries] = keys[0]
        if self._within is not None and len(self._table):
            every = self._table.entries
            every = every[np.argsort(self._last_kept[every], kind="stable")]
            self._kept = deque([(every.astype(np.int64), self._last_kept[every])])
            self._kept_events = len(every)

    def reset(self) -> None:
        super().reset()
        self._held.clear()
        self._table.clear()
        if len(self._last_kept) != self._table.capacity:
            self._last_kept = np.zeros(self._table.capacity, np.int64)
        self._kept.clear()
        self._kept_events = 0

    @cached_property
    def _key_hash(self) -> KeyHash:
        return KeyHash(self._words, self.strings)

    @property
    def keys(self) -> int:
        """Keys that are remembered."""
        return len(self._table)

    @property
    def remembered(self) -> Remembered | None:
        return None if self._within is not None else Remembered(len(self._table), self._key_bytes)

    @property
    def state_bytes(self) -> int:
        return self._held.bytes + self._key_bytes + 16 * self._kept_events

    @property
    def _key_bytes(self) -> int:
        return self._table.nbytes + self._last_kept.nbytes


def _copies(layout: Layout, output: Layout) -> list[tuple[int | None, np.dtype[Any]]]:
    """For each array of the output its place in the input; None where the input lacks it: absent ``$sub``."""
    copies: list[tuple[int | None, np.dtype[Any]]] = []
    for field in output.fields:
        known = field.name in layout
        copies.append((layout.data(field.name) if known else None, field.dtype.numpy))
        if field.nullable:
            copies.append((layout.nulls(field.name) if known else None, np.dtype(np.bool_)))
    return copies


_INTS, _INT = types.Array(types.int64, 1, "C"), types.int64


@fixed(types.boolean(TABLE_TYPE, types.Array(types.int64, 2, "C"), _INTS, _INTS, _INT, _INTS, _INTS, _INTS))
def choose(
    table: TableArrays,
    keys: Words,
    times: Ints,
    last_kept: Ints,
    within: int,
    rows: Ints,
    entries: Ints,
    progress: Ints,
) -> bool:
    """Lists the rows to keep, and the entries of their keys; False when the table must grow first."""
    for index in range(progress[0], len(times)):
        key = keys[index]
        in_use = table[4][2]
        entry = insert(table, key, hash_key(key))
        if entry == FULL:
            progress[0] = index
            return False
        is_new = table[4][2] > in_use
        if is_new or (within >= 0 and times[index] - last_kept[entry] >= within):
            last_kept[entry] = times[index]
            rows[progress[1]] = index
            entries[progress[1]] = entry
            progress[1] += 1
    progress[0] = len(times)
    return True
