"""Group join: every event of the left stream with aggregates over the right stream's events that match it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import kernel_of
from penstock.kernels.builder import KernelBuilder
from penstock.kernels.rows import row_kernel, store, system_fields
from penstock.memory.layout import ORDER, SUB, SYSTEM_TYPES, TIME, Columns, Layout
from penstock.operators.joins.join_kernels import place
from penstock.operators.joins.windowed_sides import WindowedSides
from penstock.operators.run.base import Build
from penstock.operators.run.registry import runs
from penstock.operators.windows.fold import Fold
from penstock.operators.windows.panes import ranges
from penstock.query.graph import Port
from penstock.query.steps import GroupJoinSpec
from penstock.query.stream.joins import WINDOW_NAMES
from penstock.query.types import DataType, Field
from penstock.state.keys import KeyWords
from penstock.state.table import ABSENT, KeyTable

_LEFT = Field("$left", DataType.INT64)  # the left event of a pair, as its number among those of the window
_MOST_AT_ONCE = 1 << 20  # pairs that are worked on together: bounds the memory of closing

Ints = NDArray[np.int64]


@runs(GroupJoinSpec)
class GroupJoin(WindowedSides):
    """Holds the events of both sides until the watermark closes their windows, then matches them.

    A left event without a match comes out all the same: its counts are 0, its other aggregates null. A null
    key matches nothing.
    """

    def __init__(self, build: Build) -> None:
        spec = build.node.spec_as(GroupJoinSpec)
        super().__init__(build, spec.on, spec.window)
        left, right = build.inputs
        self._names = [[pair[index] for pair in spec.on] for index in (0, 1)]
        self._words = KeyWords(
            Field(ours, left.field(ours).dtype, left.field(ours).nullable or right.field(theirs).nullable)
            for ours, theirs in spec.on
        )
        self._output = build.outputs.get(Port.MAIN)
        if self._output is None:
            return
        read: set[str] = set()
        read.update(*(expr.columns() for name, expr in spec.columns if name in self._output))
        aggregates = [(name, one) for name, one in spec.aggregates if name in read]
        compared = set() if spec.where is None else set(spec.where.columns())
        compared.update(*(one.columns() for _, one in aggregates))
        self._pair = [one for one in spec.pair if one[0] in compared]
        fields = [_renamed(build.inputs[side].field(theirs), name) for name, side, theirs in self._pair]
        self._places = [name for name in (ORDER, SUB) if name in right]
        system = [Field(name, SYSTEM_TYPES[name]) for name in self._places]
        self._fold: Fold | None = None
        made = []
        if aggregates:
            layout = Layout([*fields, *system, _LEFT])
            self._fold = Fold(layout, [_LEFT.name], aggregates, spec.where, self.strings, self.id)
            for name, one in aggregates:
                dtype = self._fold.output.field(name).dtype
                made.append(Field(name, dtype, one.function.of_none is None))
        kept = [field for field in left.fields if field.name in read]
        bounds = [Field(name, DataType.TIMESTAMP) for name in WINDOW_NAMES if name not in left]
        system = [Field(TIME, DataType.TIMESTAMP)]
        system += [Field(ORDER, DataType.INT64)] if ORDER in self._output else []
        self._row = Layout([*bounds, *kept, *made, *system], TIME)
        self._select = _Selection(spec, self._row, self._output, build)

    def close(self, start: int, end: int) -> None:
        count = self.sides[0].count(end)
        if not count or self._output is None:
            return
        left = tuple(column[:count] for column in self.sides[0].ordered)
        known: dict[str, tuple[NDArray[Any], NDArray[np.bool_] | None]] = {}
        if self._fold is not None:
            known = self._aggregated(self._fold, left, count, start, end)
        for name, time in zip((*WINDOW_NAMES, TIME), (start, end, end - 1), strict=True):
            known.setdefault(name, (np.full(count, time, np.int64), None))
        if ORDER in self._row:
            known[ORDER] = (self._hashed_places(left, count), None)
        columns: list[NDArray[Any]] = []
        layout = self.inputs[0]
        for field in self._row.fields:
            if field.name in layout and field.name not in (TIME, ORDER):
                columns.append(left[layout.data(field.name)])
                nulls = layout.nulls(field.name)
                if nulls is not None:
                    columns.append(left[nulls])
            else:
                data, missing = known[field.name]
                columns.append(data)
                if field.nullable:
                    assert missing is not None
                    columns.append(missing)
        self.emit(self._select(tuple(np.ascontiguousarray(column) for column in columns), count), count)

    def _aggregated(
        self, fold: Fold, left: Columns, count: int, start: int, end: int
    ) -> dict[str, tuple[NDArray[Any], NDArray[np.bool_] | None]]:
        """The aggregates of each left event: values, and which of them are null."""
        side = self.sides[1]
        right = tuple(column[: side.count(end)] for column in side.ordered)
        first, matches, rows = self._matching(left, count, right, len(right[side.time]))
        total = np.cumsum(matches)
        done = 0
        while done < count:
            before = int(total[done - 1]) if done else 0
            until = max(done + 1, int(np.searchsorted(total, before + _MOST_AT_ONCE, side="right")))
            numbers = np.repeat(np.arange(done, until), matches[done:until])
            found = rows[ranges(first[done:until], matches[done:until])]
            if len(found):
                fold.add(self._paired(left, numbers, right, found, start))
            done = until
        columns, layout = fold.take(), fold.output
        owners = columns[layout.data(_LEFT.name)]
        made: dict[str, tuple[NDArray[Any], NDArray[np.bool_] | None]] = {}
        for field in layout.fields[1:]:
            data = np.zeros(count, field.dtype.numpy)
            data[owners] = columns[layout.data(field.name)]
            missing = np.ones(count, np.bool_)
            nulls = layout.nulls(field.name)
            missing[owners] = False if nulls is None else columns[nulls]
            made[field.name] = (data, missing)
        return made

    def _matching(
        self, left: Columns, count: int, right: Columns, others: int
    ) -> tuple[Ints, Ints, NDArray[np.intp]]:
        """Right events in the order of their keys, and of each left event where its matches begin there and
        how many they are."""
        table = KeyTable(self._words.width)
        theirs = self._words.encode(self.inputs[1], right, 0, others, self._names[1])
        entries = table.insert(theirs)
        by_entry = np.argsort(entries, kind="stable")
        sizes = np.bincount(entries, minlength=table.size + 1)
        ours = self._words.encode(self.inputs[0], left, 0, count, self._names[0])
        found = table.find(ours)
        found[self._words.null_rows(ours) | (found == ABSENT)] = table.size  # nobody has it
        begins: Ints = np.cumsum(sizes) - sizes
        return begins[found], sizes[found], by_entry

    def _paired(self, left: Columns, numbers: Ints, right: Columns, found: Ints, start: int) -> Columns:
        """Pairs in the layout that the fold takes."""
        columns: list[NDArray[Any]] = []
        for _, index, theirs in self._pair:
            layout, side, rows = self.inputs[index], (left, right)[index], (numbers, found)[index]
            columns.append(side[layout.data(theirs)][rows])
            nulls = layout.nulls(theirs)
            if nulls is not None:
                columns.append(side[nulls][rows])
        columns += [right[self.inputs[1].data(name)][found] for name in self._places]
        return (*columns, numbers, right[self.sides[1].time][found] - start)

    def _hashed_places(self, left: Columns, count: int) -> Ints:
        layout = self.inputs[0]
        times, orders = left[self.sides[0].time], left[layout.data(ORDER)]
        subs = left[layout.data(SUB)] if SUB in layout else np.zeros(0, np.int64)
        hashed = np.empty(count, np.int64)
        contiguous = (np.ascontiguousarray(array) for array in (times, orders, subs))
        self._place(*contiguous, np.arange(count), count, hashed)
        return hashed

    @cached_property
    def _place(self) -> Any:
        return kernel_of(place)


class _Selection:
    """Computes the columns of the result, as a selection behind the operator would."""

    def __init__(self, spec: GroupJoinSpec, layout: Layout, target: Layout, build: Build) -> None:
        builder = KernelBuilder(layout, build.strings)
        body: list[str] = []
        for name, expr in spec.columns:
            if name in target:
                body += store(target, name, builder.emit(expr, target.field(name).dtype))
        for name in system_fields(target):
            body += store(target, name, builder.load(name))
        self._kernel = row_kernel("select_rows", builder, target, [*body, "o += uint64(1)"])
        self._arguments = builder.parameters.arguments
        self._target = target

    def __call__(self, columns: Columns, count: int) -> Columns:
        made = self._target.allocate(count)
        self._kernel(columns, 0, count, made, 0, *self._arguments())
        return made


def _renamed(field: Field, name: str) -> Field:
    return Field(name, field.dtype, field.nullable)
