"""Aggregates over tumbling and sliding windows: kept per key and pane, put together when a window closes."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.memory.layout import Columns
from penstock.operators.aggregates.accumulator import Finished
from penstock.operators.aggregates.accumulators import Accumulators
from penstock.operators.columns.front import front_of
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.fusion import takes_front
from penstock.operators.windows.aggregation import Aggregation, WindowMerge
from penstock.operators.windows.aggregation_state import AggregationState
from penstock.operators.windows.group_merge import GroupMerge
from penstock.operators.windows.pane_kernel import update_kernel
from penstock.operators.windows.panes import Panes
from penstock.operators.windows.window_aggregates import aggregates_over
from penstock.operators.windows.window_rows import WindowRows
from penstock.query.expr import Expr
from penstock.query.graph import Port
from penstock.query.steps import WindowAggregateSpec
from penstock.query.windows import Sliding
from penstock.state.keys import Words
from penstock.state.tables import StateRows

takes_front(WindowAggregateSpec, lambda node: isinstance(node.spec_as(WindowAggregateSpec).window, Sliding))


@aggregates_over(Sliding)
class WindowAggregate(Operator):
    """Emits one row per key and window with at least one event, once, when the watermark passes its end."""

    mergeable = True

    def __init__(self, build: Build, where: Expr | None = None, *, many_groups: bool = False) -> None:
        """``where``: takes no other events in than those for which it is true. ``many_groups``: there will be
        so many that their table fits into no cache.
        """
        super().__init__(build)
        spec = build.node.spec_as(WindowAggregateSpec)
        assert isinstance(spec.window, Sliding)
        self.front = front = front_of(build)
        builder = None if front is None else front.builder()
        self._aggregation = Aggregation(build, spec, builder)
        width = self._aggregation.keys.width
        self._panes = Panes(spec.window, width)
        self._pane_us = spec.window.pane_us
        self._aggregation.accumulators.resize(self._panes.table.capacity)
        event = "place" if front is None else front.event(self._aggregation.builder, "place")
        self._kernel = update_kernel(
            self._aggregation, spec.window, where, many_groups=many_groups, event=event
        )
        self._parameters = self._aggregation.builder.parameters
        output = self.layouts.get(Port.MAIN)
        self._rows = None if output is None else WindowRows(output, self._aggregation.keys, self.strings)
        self._merge = None if spec.window.is_tumbling else WindowMerge(self._aggregation.parts, width)
        self._state = AggregationState(self._aggregation, "$pane")
        self.state_formats = self._state.formats

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        if self._ready:
            return 0
        position, last = start, stop
        if self.front is None:
            self.divert_late(index, columns, start, stop)
        else:
            position, last = self.front.select(columns, start, stop)
            self.late_events += self.front.late_events(columns, (position, last))
        if self._rows is None:
            return stop - start
        aggregation, panes = self._aggregation, self._panes
        while True:
            kept = aggregation.arguments(last - position)
            position += self._kernel(
                columns,
                position,
                last,
                *kept,
                panes.table.arrays,
                panes.lowest,
                self._pane_us,
                *self._parameters.arguments(),
            )
            aggregation.took(kept[2])
            if position == last:
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
        windows, keys, results = self._finished(entries, windows)
        starts = self._panes.starts(windows)
        ends = self._panes.ends(windows)
        hashes, order = self._rows.order(keys, ends)
        ordered = {
            name: (data[order], None if nulls is None else nulls[order])
            for name, (data, nulls) in results.items()
        }
        rows = self._rows.columns(keys[order], starts[order], ends[order], hashes[order], ordered)
        self.emit(rows, len(windows))

    def _finished(
        self, entries: NDArray[np.int64], windows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Words, dict[str, Finished]]:
        """The groups of whole windows: the number of each one's window, its key words and its results."""
        table, aggregation = self._panes.table, self._aggregation
        if self._merge is None:  # a pane is a window
            parts: NDArray[Any] = np.arange(len(entries))
            keys, groups = table.words.take(entries, axis=0)[:, 1:], entries
            merged: Accumulators = aggregation.accumulators
        else:
            parts, words, merged = self._merge(entries, windows, table.words, aggregation.accumulators.arrays)
            windows, keys, groups = words[:, 0], words[:, 1:], np.arange(len(words))
        finished = merged.finish(groups)
        collected = [part.finish(entries, parts, len(groups)) for part in aggregation.collected]
        return windows, keys, aggregation.results(finished, collected)

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
