"""Partial aggregates as native Spark aggregations: rows of the table that the window aggregate keeps.

What Spark makes of a batch here is what the operator would export after it took the batch in, so it can be
merged into the operator's state (``Operator.merge_state``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import Accumulator, Native, kept_by
from penstock.query.aggregates import Aggregate
from penstock.query.graph import Port, QueryVertex
from penstock.query.inference import resolved
from penstock.query.steps import WindowAggregateSpec
from penstock.query.types import DataType, Schema
from penstock.query.windows import Sliding
from penstock.spark.native.lowering import constant, lowers, named
from penstock.spark.native.native_step import lowered
from penstock.spark.native.numbers import floor_divide
from penstock.state.tables import HASH

PANE = "$pane"
KIND, ROWS = "$kind", "$rows"
_GOOD, _LATE, _BAD = 0, 1, 2
_KEY = "$key."


def partial_of(node: QueryVertex, source: Layout, outputs: dict[Port, Layout]) -> PartialAggregate | None:
    """How Spark pre-aggregates for this step, whose input has the layout ``source``; None if it cannot.

    It cannot where late events are read, since they do not come through.
    """
    spec = node.spec
    if not isinstance(spec, WindowAggregateSpec) or not isinstance(spec.window, Sliding):
        return None
    if spec.window.clock.zone is not None:
        return None
    output = outputs.get(Port.MAIN)
    if output is None or Port.LATE in outputs or source.time is None:
        return None
    aggregates: dict[Any, tuple[str, Aggregate]] = {}
    for name, aggregate in spec.aggregates:  # the same aggregate twice is kept once, by its first name
        if name in output:
            aggregates.setdefault(aggregate.key(), (name, aggregate))
    if not all(_is_native(aggregate, source.schema) for _, aggregate in aggregates.values()):
        return None
    return PartialAggregate(node.id, spec.keys, spec.window, tuple(aggregates.values()), source)


def _is_native(aggregate: Aggregate, schema: Schema) -> bool:
    """Not so sums, means and variances of floats: ours lose nothing, Spark's do."""
    kept = kept_by(aggregate, schema, StringPool())
    if not isinstance(kept, Accumulator) or not all(slot.native for slot in kept.slots):
        return False
    return all(lowers(expr, schema) for expr in aggregate.exprs())


@dataclass(frozen=True, eq=False)
class PartialAggregate:
    """``node`` is the window aggregate; ``source`` the layout of the rows to aggregate."""

    node: str
    keys: tuple[str, ...]
    window: Sliding
    aggregates: tuple[tuple[str, Aggregate], ...]
    source: Layout

    def takes(self, computed: dict[str, Column] | None) -> bool:
        """Whether columns can be given to ``apply`` that the frame does not have: as keys only."""
        if computed is None:
            return False
        read = {name for _, a in self.aggregates for name in a.columns()}
        return not read & set(computed) and self.source.time not in computed

    def apply(
        self,
        frame: DataFrame,
        late: Column | None = None,
        bad: Column | None = None,
        computed: dict[str, Column] | None = None,
    ) -> DataFrame:
        """The rows of the operator's table ``groups`` for these events, but for the hashes of their keys.

        ``late`` and ``bad`` tell rows that are not to be in it: they make groups of their own, told apart by
        ``KIND``, with their number in ``ROWS``. Where there is neither, there are no such columns.
        ``computed`` has keys that are not columns of the frame.
        """
        pane, results = self._columns
        known = computed or {}
        grouping = [pane, *(known.get(key, named(key)).alias(_KEY + key) for key in self.keys)]
        if late is None and bad is None:
            return frame.groupBy(*grouping).agg(*results)
        kind = fn.lit(_GOOD) if late is None else fn.when(late, _LATE).otherwise(_GOOD)
        kind = kind if bad is None else fn.when(bad, _BAD).otherwise(kind)
        counted = fn.count(fn.lit(1)).alias(ROWS)
        return frame.groupBy(*grouping, kind.alias(KIND)).agg(*results, counted)

    @cached_property
    def _columns(self) -> tuple[Column, list[Column]]:
        assert self.source.time is not None
        micros, pane_us = fn.unix_micros(named(self.source.time)), self.window.pane_us
        if self.window.clock.offset_us:
            micros = micros - constant(self.window.clock.offset_us, DataType.INT64)
        pane = floor_divide(micros, constant(pane_us, DataType.INT64), DataType.INT64, pane_us).alias(PANE)
        slots = [
            (f"${name}.{place}", slot)
            for name, aggregate in self.aggregates
            for place, slot in enumerate(self._slots(aggregate))
        ]
        # Spark wants one result at least
        results = [slot.alias(name) for name, slot in slots] or [fn.count(fn.lit(1)).alias("$n")]
        return pane, results

    def _slots(self, aggregate: Aggregate) -> list[Column]:
        """What the aggregate's accumulator keeps, slot by slot."""
        schema = self.source.schema
        if not aggregate.operands:
            value, dtype = fn.lit(1), DataType.INT64
        else:
            (operand,) = aggregate.operands
            value, dtype = lowered(operand, schema), resolved(operand, schema).dtype
        if aggregate.where is not None:
            value = fn.when(lowered(aggregate.where, schema), value)
        return [_native(slot.native, value, dtype) for slot in kept_by(aggregate, schema, StringPool()).slots]


def left_out(rows: pa.Table) -> tuple[pa.Table, int, int]:
    """The groups alone, how many events were late, and how many records bad."""
    if KIND not in rows.column_names:
        return rows, 0, 0
    kinds: Any = rows.column(KIND).to_numpy()
    counts: Any = rows.column(ROWS).to_numpy()
    late, bad = (int(counts[kinds == kind].sum()) for kind in (_LATE, _BAD))
    return (rows if not late + bad else rows.filter(pa.array(kinds == _GOOD))), late, bad


def state_table(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Rows that ``PartialAggregate.apply`` made, as they come from Spark, in the schema of ``groups``.

    The hashes of keys are left 0: only who routes rows needs them.
    """
    arrays: list[Any] = []
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    for field in schema:
        if field.name == HASH:
            arrays.append(pa.array(np.zeros(table.num_rows, np.int64)))
            continue
        column: Any = table.column(field.name)
        if pa.types.is_dictionary(field.type):
            column = column.combine_chunks().dictionary_encode()
        arrays.append(column if column.type == field.type else column.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _native(form: Native | None, value: Column, dtype: DataType) -> Column:
    """A slot of the values that are not null; without one it is what a new group has there."""
    whole = value.cast("bigint")
    match form:
        case Native.COUNT:
            return fn.count(value)
        case Native.ANY:
            return fn.count(value) > 0
        case Native.SUM:
            return _or(fn.sum(whole), 0)
        case Native.SUM_UPPER:
            return _or(fn.sum(fn.shiftright(whole, 32)), 0)
        case Native.SUM_LOWER:
            return _or(fn.sum(whole.bitwiseAND(constant(0xFFFFFFFF, DataType.INT64))), 0)
        case Native.LEAST | Native.GREATEST:
            return _extreme(form is Native.LEAST, value, dtype)
        case None:
            raise TypeError("a slot without a native form")
    assert_never(form)


def _extreme(least: bool, value: Column, dtype: DataType) -> Column:
    """The least or greatest, as a group starts where no value came; NaN is above every number in both."""
    if dtype is DataType.TIMESTAMP:
        value, dtype = fn.unix_micros(value), DataType.INT64
    found = fn.min(value) if least else fn.max(value)
    if dtype.is_float:
        return fn.coalesce(found, constant(float("nan") if least else float("-inf"), dtype))
    limits = np.iinfo(dtype.numpy)
    return fn.coalesce(found, constant(int(limits.max if least else limits.min), dtype))


def _or(column: Column, start: int) -> Column:
    return fn.coalesce(column, constant(start, DataType.INT64))
