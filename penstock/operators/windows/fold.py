"""Fold: aggregates over groups that are there as a whole, so that nothing is kept between two calls."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import TIME, Columns, Layout
from penstock.memory.strings import StringPool
from penstock.operators.run.base import Build
from penstock.operators.windows.window_aggregate import WindowAggregate
from penstock.query.aggregates import Aggregate
from penstock.query.expr import Expr
from penstock.query.graph import Port, QueryVertex
from penstock.query.steps import WindowAggregateSpec
from penstock.query.types import DataType, Field, Schema
from penstock.query.windows import Sliding

_ALL_TIME = Sliding(1 << 62, 1 << 62)
_TIME_FIELD = Field(TIME, DataType.TIMESTAMP)


class Fold:
    """Rows of ``layout`` in, one row per group of ``keys`` out, in no particular order.

    ``input`` is what to call it with: ``layout`` and, last, times that are not negative, which ``first`` and
    ``last`` go by. ``output`` is what comes out: keys and aggregates. Only rows for which ``where`` is true
    count.
    """

    def __init__(
        self,
        layout: Layout,
        keys: Iterable[str],
        aggregates: Iterable[tuple[str, Aggregate]],
        where: Expr | None,
        strings: StringPool,
        name: str,
    ) -> None:
        self.input = Layout([*layout.fields, _TIME_FIELD], TIME)
        spec = WindowAggregateSpec(tuple(keys), _ALL_TIME, tuple(aggregates))
        fields = [layout.field(key) for key in spec.keys]
        for result, aggregate in spec.aggregates:
            typed = aggregate.result_type(layout.schema)
            fields.append(Field(result, typed.dtype, typed.nullable))
        self.output = Layout(fields)
        node = QueryVertex(name, spec, (), Schema(fields), None)
        build = Build(node, (self.input,), {Port.MAIN: self.output}, strings)
        self._groups = _WholeGroups(build, where)

    def add(self, columns: Columns) -> None:
        """Takes rows in; those of one group may come in several calls."""
        self._groups.consume(0, columns, 0, len(columns[-1]))

    def take(self) -> Columns:
        """The groups of all rows added since the last call."""
        self._groups.on_watermark(END_OF_TIME)
        parts = [self.output.allocate(0), *self._groups.made]
        self._groups.made = []
        self._groups.reset()
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


class _WholeGroups(WindowAggregate):
    """Keeps what it would write."""

    def __init__(self, build: Build, where: Expr | None) -> None:
        super().__init__(build, where)
        self.made: list[Columns] = []

    def emit(self, columns: Columns, count: int, port: Port = Port.MAIN) -> None:
        if count:
            self.made.append(columns)
