"""Drives one operator without an engine: rows as dicts in, in random cuts, rows as dicts out.

    harness = Harness(
        Filter, FilterSpec(col("x") > 1),
        inputs=[layout({"t": "timestamp", "x": "int64?"}, time="t")],
        output=layout({"t": "timestamp", "x": "int64?"}, time="t"),
    )
    harness.feed([{"t": 1, "x": 5}, {"t": 2, "x": None}])        # input 0; feed(rows, index=1) for the second
    harness.watermark(10)
    harness.end()                                                 # the watermark END_OF_TIME, then flush
    assert harness.rows() == [{"t": 1, "x": 5}]
    harness.rows(Port.LATE), harness.operator.late_events

Rows name the layout's columns, system columns too (``$time``, ``$order``, ``$sub``, ``$late``); what a row
leaves out is null where the column is nullable, else zero. Strings are text, timestamps are int microseconds.
Blocks are small and the chunks few, so outlets fill up all the time: every run goes through backpressure.
``seed`` decides the cuts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.memory.blocks import ChunkShape
from penstock.memory.coordinator import MemoryCoordinator
from penstock.memory.edges import END_OF_TIME, Edge, Outlet
from penstock.memory.layout import SYSTEM_TYPES, Columns, Layout
from penstock.memory.strings import StringPool
from penstock.operators.run.base import Build, Operator
from penstock.query.graph import Input, Port, QueryVertex
from penstock.query.steps.spec import Spec
from penstock.query.types import DataType, Field, Schema

Row = dict[str, Any]


def layout(
    columns: Schema | Mapping[str, str | DataType], time: str | None = None, system: Iterable[str] = ()
) -> Layout:
    """A layout of these columns and, after them, system columns: ``layout({"x": "int64"}, TIME, {TIME})``."""
    fields = [*Schema.of(columns).fields, *(Field(name, SYSTEM_TYPES[name]) for name in system)]
    return Layout(fields, time)


def columns_of(
    rows: Sequence[Mapping[str, Any]], target: Layout, strings: StringPool, before: int = 0
) -> Columns:
    """The rows as columns of ``target``, with ``before`` unused events in front."""
    columns = target.allocate(before + len(rows))
    for field in target.fields:
        data, nulls = target.data(field.name), target.nulls(field.name)
        for place, row in enumerate(rows, before):
            value = row.get(field.name)
            if value is None:
                if nulls is not None:
                    columns[nulls][place] = True
            else:
                columns[data][place] = strings.code(value) if field.dtype is DataType.STRING else value
    return columns


def rows_of(columns: Columns, source: Layout, strings: StringPool, start: int, stop: int) -> list[Row]:
    """Events [start, stop) as dicts of Python values."""
    rows: list[Row] = [{} for _ in range(start, stop)]
    for field in source.fields:
        data, nulls = columns[source.data(field.name)], source.nulls(field.name)
        for row, place in zip(rows, range(start, stop), strict=True):
            value = data[place].item()
            if nulls is not None and columns[nulls][place]:
                row[field.name] = None
            elif field.dtype is DataType.STRING:
                row[field.name] = strings.text(value)
            else:
                row[field.name] = value
    return rows


class Harness:
    """One operator with outlets of its own. ``operator`` is it; ``strings`` its dictionary."""

    def __init__(
        self,
        operator: Callable[[Build], Operator],
        spec: Spec,
        inputs: Sequence[Layout],
        output: Layout | None,
        *,
        late: Layout | None = None,
        late_right: Layout | None = None,
        bad: Layout | None = None,
        failed: Layout | None = None,
        node_id: str = "step",
        block_events: int = 8,
        blocks: int = 2,
        chunks: int = 2,
        seed: int = 0,
        strings: StringPool | None = None,
    ) -> None:
        self.strings = strings or StringPool()
        self.inputs = tuple(inputs)
        given = {Port.MAIN: output, Port.LATE: late, Port.LATE_RIGHT: late_right, Port.BAD: bad}
        given[Port.FAILED] = failed
        layouts = {port: found for port, found in given.items() if found is not None}
        schema = output.visible if output is not None else Schema()
        time = output.time if output is not None else None
        node = QueryVertex(
            node_id,
            spec,
            tuple(Input(f"input{index}") for index in range(len(self.inputs))),
            schema,
            None if time is None or time.startswith("$") else time,
        )
        self.operator = operator(Build(node, self.inputs, layouts, self.strings))
        self._random = random.Random(seed)
        coordinator = MemoryCoordinator(background=False)
        self._edges: dict[Port, Edge] = {}
        self._collected: dict[Port, list[Row]] = {port: [] for port in layouts}
        outlets: dict[Port, Outlet] = {}
        capacity = max(block_events, self.operator.fan_out)
        for port, found in layouts.items():
            pool = coordinator.pool(ChunkShape(found, capacity, blocks), limit=chunks, readers=1)
            outlets[port] = Outlet(found, pool)
            self._edges[port] = outlets[port].connect()
        self.operator.attach(outlets)

    def feed(self, rows: Sequence[Mapping[str, Any]], index: int = 0, *, cut: bool = True) -> None:
        """Lets the operator consume rows on one input, cut at random (or, without ``cut``, whole)."""
        position = 0
        while position < len(rows):
            size = self._random.randint(1, len(rows) - position) if cut else len(rows) - position
            self._consume(rows[position : position + size], index)
            position += size

    def watermark(self, time_us: int) -> None:
        """Passes a watermark and flushes what it made ready."""
        self._flush()
        self.operator.on_watermark(time_us)
        self._flush()

    def end(self) -> None:
        """The input is complete."""
        self.watermark(END_OF_TIME)
        self.operator.on_end(True)
        self._flush()

    def rows(self, port: Port = Port.MAIN) -> list[Row]:
        """All that came out of a port so far."""
        self._flush()
        self._drain()
        return self._collected[port]

    def _consume(self, rows: Sequence[Mapping[str, Any]], index: int) -> None:
        before = self._random.randint(0, 3)
        columns = columns_of(rows, self.inputs[index], self.strings, before)
        start, stop = before, before + len(rows)
        idle_turns = 0
        while start < stop:
            self._flush()
            taken = self.operator.consume(index, columns, start, stop)
            assert 0 <= taken <= stop - start, f"consume returned {taken} for {stop - start} events"
            start += taken
            idle_turns = 0 if taken else idle_turns + 1
            assert idle_turns < 3, "consume takes nothing although all outlets have room"
            if taken == 0 or self._random.random() < 0.3:
                self._drain()

    def _flush(self) -> None:
        while not self.operator.flush():
            self._drain()

    def _drain(self) -> None:
        for port, edge in self._edges.items():
            while (found := edge.readable()) is not None:
                columns, start, stop = found
                self._collected[port] += rows_of(columns, edge.layout, self.strings, start, stop)
                edge.advance(stop - start)


def same(a: Any, b: Any) -> bool:
    """Equality of two values as results see it: NaN equals NaN, and a bool is not a number."""
    if a is None or b is None:
        return a is b
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (np.isnan(a) and np.isnan(b))
    return type(a) is type(b) and bool(a == b)
