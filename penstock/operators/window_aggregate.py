"""Aggregates over tumbling and sliding windows: kept per key and pane, put together when a window closes."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.kernels.cache import Kernel
from penstock.memory.layout import Columns
from penstock.operators.accumulators import Accumulators
from penstock.operators.aggregation import Aggregation, WindowMerge, fill_in, with_lookup
from penstock.operators.aggregation_state import AggregationState
from penstock.operators.base import Build, Operator
from penstock.operators.group_merge import GroupMerge
from penstock.operators.panes import Panes
from penstock.operators.window_rows import WindowRows
from penstock.query.graph import Port, WindowAggregateSpec
from penstock.query.windows import Sliding
from penstock.state.table import TABLE_TYPE
from penstock.state.tables import StateRows


class WindowAggregate(Operator):
    """Emits one row per key and window with at least one event, once, when the watermark passes its end."""

    mergeable = True

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec
        assert isinstance(spec, WindowAggregateSpec)
        assert isinstance(spec.window, Sliding)
        self._aggregation = Aggregation(build, spec)
        width = self._aggregation.keys.width
        self._panes = Panes(spec.window, width)
        self._pane_us = spec.window.pane_us
        self._aggregation.accumulators.resize(self._panes.table.capacity)
        self._kernel = _compile(self._aggregation)
        self._parameters = self._aggregation.builder.parameters
        output = self.layouts.get(Port.MAIN)
        self._rows = None if output is None else WindowRows(output, self._aggregation.keys, self.strings)
        self._merge = None if spec.window.is_tumbling else WindowMerge(self._aggregation.parts, width)
        self._state = AggregationState(self._aggregation, "$pane")
        self.state_formats = self._state.formats

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        if self._ready:
            return 0
        self.divert_late(index, columns, start, stop)
        if self._rows is None:
            return stop - start
        aggregation, panes, position = self._aggregation, self._panes, start
        while True:
            kept = aggregation.arguments(stop - position)
            position += self._kernel(
                columns,
                position,
                stop,
                *kept,
                panes.table.arrays,
                panes.lowest,
                self._pane_us,
                *self._parameters.arguments(),
            )
            aggregation.took(kept[2])
            if position == stop:
                return stop - start
            panes.table.grow()
            aggregation.accumulators.resize(panes.table.capacity)

    def on_watermark(self, watermark_us: int) -> None:
        if not self._panes.closes(watermark_us):
            return
        for entries, windows in self._panes.closing(watermark_us):
            self._emit_windows(entries, windows)
        size = self._panes.table.size
        removed = self._panes.forget(watermark_us)
        for part in self._aggregation.collected:
            part.drop(removed, size)
        self._aggregation.accumulators.resize(self._panes.table.capacity)

    def _emit_windows(self, entries: NDArray[np.int64], windows: NDArray[np.int64]) -> None:
        """Emits whole windows; entry ``entries[i]`` is a part of window number ``windows[i]``."""
        assert self._rows is not None
        table, aggregation = self._panes.table, self._aggregation
        if self._merge is None:  # a pane is a window
            parts: NDArray[Any] = np.arange(len(entries))
            keys, groups = table.words[entries, 1:], entries
            merged: Accumulators = aggregation.accumulators
        else:
            parts, words, merged = self._merge(entries, windows, table.words, aggregation.accumulators.arrays)
            windows, keys, groups = words[:, 0], words[:, 1:], np.arange(len(words))
        starts = self._panes.starts(windows)
        ends = starts + self._panes.window.size_us
        hashes, order = self._rows.order(keys, ends)
        finished = merged.finish(groups[order])
        collected = []
        for part in aggregation.collected:
            data, nulls = part.finish(entries, parts, len(groups))
            collected.append((data[order], None if nulls is None else nulls[order]))
        results = aggregation.results(finished, collected)
        rows = self._rows.columns(keys[order], starts[order], ends[order], hashes[order], results)
        self.emit(rows, len(groups))

    def _state_rows(self) -> list[StateRows]:
        table = self._panes.table
        entries = table.entries
        return self._state.rows(
            entries, table.words[entries], None if self._rows is None else self._rows.hash
        )

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        self._panes.resume(watermark_us)
        due = len(self._panes.table) + len(rows[0][0])
        self._merge_rows(rows)
        if len(self._panes.table) != due:
            raise self._given_twice()

    def _merge_rows(self, rows: list[Columns]) -> None:
        if len(rows[0][0]):
            self._merge_groups(rows[0], self._panes)
            self._state.collect(rows, self._panes.table)

    @cached_property
    def _merge_groups(self) -> GroupMerge:
        return GroupMerge(self._aggregation, self.state_formats[0].layout)

    def reset(self) -> None:
        super().reset()
        self._panes.reset()
        self._aggregation.reset(self._panes.table.capacity)

    @property
    def state_bytes(self) -> int:
        return self._panes.table.nbytes + self._aggregation.nbytes

    @property
    def open_windows(self) -> int:
        return self._panes.open_windows


# Stops early when the table is full: returns how many events it took. The last event's pane is remembered, so
# most events need no division; known keys are looked up right here, so they need no call; and a row number
# without a sign saves the test for a negative one.
_UPDATE = """
def update_panes(
    inp, start, stop, state, collected, filled, table, lowest, pane_us, ints, floats, tables
):
    slots, keys, live, free, counts = table
    @preamble
    shift, mask = uint64(counts[3]), uint64(len(slots) - 1)
    pane, pane_low, pane_high, pane_hash = int64(0), int64(1), int64(0), int64(0)
    for k in range(uint64(start), uint64(stop)):
        @head
        if time < pane_low or time >= pane_high:
            pane = floor_div(time, pane_us)
            pane_low = pane * pane_us
            pane_high = pane_low + pane_us
            pane_hash = hash_word(int64(0), pane)
        hashed = HASHED
        slot = first_slot(shift, hashed)
        entry = int64(slots[slot])
        while entry >= 0 and (DIFFERS):
            slot = (slot + uint64(1)) & mask
            entry = int64(slots[slot])
        if entry < 0:
            entry = insert(table, (pane, WORDS), hashed)
            if entry == FULL:
                return int64(k) - start
            lowest[0] = min(lowest[0], pane)
            @start
        at = uint64(entry)
        @update
    return stop - start
"""


def _compile(aggregation: Aggregation) -> Kernel:
    head, words = aggregation.head()
    update = aggregation.update("at")
    source = fill_in(
        with_lookup(_UPDATE, words),
        head=head,
        update=update,
        start=aggregation.accumulators.start("acc", "entry"),
        preamble=aggregation.preamble(),
    )
    parameters = (TABLE_TYPE, types.Array(types.int64, 1, "C"), types.int64)
    return aggregation.compile("update_panes", source, parameters)
