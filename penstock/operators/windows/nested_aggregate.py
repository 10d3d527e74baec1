"""Aggregates of aggregates: one row per key, window and a further key first, then aggregates of those
rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.builder import KernelBuilder
from penstock.kernels.conditions import is_true
from penstock.kernels.rows import row_kernel
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import Finished
from penstock.operators.run.base import Build
from penstock.operators.run.registry import runs
from penstock.operators.windows.fold import Fold
from penstock.operators.windows.window_aggregate import WindowAggregate
from penstock.operators.windows.window_rows import KeyHash, WindowRows
from penstock.query.aggregates import Aggregate
from penstock.query.expr import Expr
from penstock.query.graph import Port
from penstock.query.steps import NestedAggregateSpec, WindowAggregateSpec
from penstock.query.types import DataType, Field
from penstock.state.keys import KeyWords, Words
from penstock.state.tables import StateRows

_WINDOW = Field("$window", DataType.INT64)  # the number of the window that an inner row belongs to
_KEPT = Field("$kept", DataType.BOOL)
_PIECE = 4096  # groups that are finished at a time


@runs(NestedAggregateSpec)
class NestedAggregate(WindowAggregate):
    """The inner groups are those of a window aggregate by all keys, and so is the state, except that it
    belongs to the outer key. When windows close, their inner rows are folded into the results."""

    def __init__(self, build: Build) -> None:
        spec = build.node.spec_as(NestedAggregateSpec)
        output = build.outputs.get(Port.MAIN)
        layout = build.inputs[0]
        wanted = set(() if output is None else output.names)
        wanted |= spec.keep.columns() if spec.keep is not None else frozenset()
        aggregates = [(name, one) for name, one in spec.aggregates if name in wanted] or [
            *spec.aggregates[:1]
        ]
        read = _read(aggregates, spec.having)
        inner = [(name, one) for name, one in spec.inner if name in read]
        keys = (*spec.keys, *spec.per)
        fields = [layout.field(key) for key in keys if key in spec.keys or key in read]
        for name, aggregate in inner:
            typed = aggregate.result_type(layout.schema)
            fields.append(Field(name, typed.dtype, typed.nullable))
        self._inner = Layout([*fields, _WINDOW])
        outputs = dict(build.outputs) if output is None else {**build.outputs, Port.MAIN: self._inner}
        node = replace(build.node, spec=WindowAggregateSpec(keys, spec.window, tuple(inner)))
        super().__init__(replace(build, node=node, outputs=outputs), spec.where, many_groups=True)
        self.node, self.layouts = build.node, build.outputs
        self._outer = KeyWords.of(layout, spec.keys)
        self._outer_hash = _OuterHash(self._aggregation.keys, self._outer, self.strings)
        if output is not None:
            folded = (*spec.keys, _WINDOW.name)
            self._fold = Fold(self._inner, folded, aggregates, spec.having, self.strings, self.id)
            self._outer_rows = WindowRows(output, self._outer, self.strings)
            self._keep = None if spec.keep is None else _Condition(spec.keep, self._fold.output, self.strings)

    def _emit_windows(self, entries: NDArray[np.int64], windows: NDArray[np.int64]) -> None:
        # Where a pane is a window, in pieces that stay in the cache; else the panes must be merged first.
        pieces = range(0, len(entries), _PIECE) if self._merge is None else range(1)
        for start in pieces:
            piece = slice(start, start + _PIECE) if self._merge is None else slice(None)
            self._fold_groups(*self._finished(entries[piece], windows[piece]))
        self._emit_folded(self._fold.take())

    def _fold_groups(self, windows: NDArray[np.int64], words: Words, results: Mapping[str, Finished]) -> None:
        """Takes inner groups into the results of their windows."""
        keys = self._aggregation.keys
        known: dict[str, Finished] = {_WINDOW.name: (windows, None)}
        decoded = iter(keys.decode(words))
        for field in keys.fields:
            known[field.name] = (next(decoded), next(decoded) if field.nullable else None)
        known.update(results)
        rows: list[NDArray[Any]] = []
        for field in self._inner.fields:
            data, nulls = known[field.name]
            rows.append(np.ascontiguousarray(data, field.dtype.numpy))
            if field.nullable:
                rows.append(np.zeros(len(windows), np.bool_) if nulls is None else nulls)
        self._fold.add((*rows, np.zeros(len(windows), np.int64)))

    def _emit_folded(self, columns: Columns) -> None:
        """Emits results, given in the layout of the fold."""
        layout = self._fold.output
        if self._keep is not None:
            kept = self._keep(columns)
            columns = tuple(column[kept] for column in columns)
        count = len(columns[0])
        if not count:
            return
        words = self._outer.encode(layout, columns, 0, count)
        windows = columns[layout.data(_WINDOW.name)]
        starts, ends = self._panes.starts(windows), self._panes.ends(windows)
        hashes, order = self._outer_rows.order(words, ends)
        results = {}
        for field in layout.fields:
            nulls = layout.nulls(field.name)
            results[field.name] = (
                columns[layout.data(field.name)][order],
                None if nulls is None else columns[nulls][order],
            )
        for field in self._outer.fields:
            del results[field.name]
        self.emit(
            self._outer_rows.columns(words[order], starts[order], ends[order], hashes[order], results), count
        )

    def _state_rows(self) -> list[StateRows]:
        table = self._panes.table
        entries = table.entries
        return self._state.rows(
            entries, table.words[entries], None if self._rows is None else self._outer_hash
        )


class _OuterHash(KeyHash):
    """The hash of the outer key, from the columns of all keys, of which it is the first."""

    def __init__(self, keys: KeyWords, outer: KeyWords, strings: StringPool) -> None:
        super().__init__(outer, strings)
        self._columns = sum(1 + field.nullable for field in keys.fields[: len(outer.fields)])

    def of_columns(self, columns: Columns, count: int) -> NDArray[np.int64]:
        return super().of_columns(columns[: self._columns], count)


class _Condition:
    """Which rows a condition is true of."""

    def __init__(self, condition: Expr, layout: Layout, strings: StringPool) -> None:
        builder = KernelBuilder(layout, strings)
        is_kept = is_true(builder, builder.emit(condition))
        body = [f"out_0[o] = {is_kept}", "o += uint64(1)"]
        self._kernel = row_kernel("rows_that_hold", builder, Layout([_KEPT]), body)
        self._arguments = builder.parameters.arguments

    def __call__(self, columns: Columns) -> NDArray[np.bool_]:
        count = len(columns[0])
        kept = np.zeros(count, np.bool_)
        self._kernel(columns, 0, count, (kept,), 0, *self._arguments())
        return kept


def _read(aggregates: list[tuple[str, Aggregate]], having: Expr | None) -> frozenset[str]:
    """The columns of the inner rows that something is made of."""
    read = having.columns() if having is not None else frozenset()
    return read.union(*(one.columns() for _, one in aggregates))
