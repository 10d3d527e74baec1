"""Lookups on Spark: by arrays that are constants of the plan for small integer keys, else by a join."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from penstock.memory.arrow import data_type
from penstock.memory.layout import Layout
from penstock.query.steps import LookupSpec
from penstock.query.types import DataType
from penstock.spark.native.lowering import constant, named

#: The arrays go with every task.
MAX_ARRAY = 4_096
#: A larger table takes longer to send in every batch than its rows take in Python.
MAX_JOINED_ROWS = 100_000
_SPARK_TYPES = {"bool": "boolean", "int32": "int", "int64": "bigint", "float32": "float", "float64": "double"}


def fits_array(spec: LookupSpec, target: Layout) -> bool:
    """Whether the table can be arrays: one integer key from a small range, and no strings to look up."""
    if len(spec.on) != 1 or not spec.table.num_rows:
        return False
    keys = spec.table[spec.on[0][1]]
    if data_type(keys.type) not in (DataType.INT32, DataType.INT64):
        return False
    taken = [theirs for name, theirs in spec.columns if name in target]
    low, high = _bounds(keys)
    return high - low < MAX_ARRAY and not any(
        data_type(spec.table[theirs].type) is DataType.STRING for theirs in taken
    )


def fits_join(spec: LookupSpec, source: Layout) -> bool:
    """Whether the table can be joined: not too large, with keys of the stream's own types."""
    return spec.table.num_rows <= MAX_JOINED_ROWS and all(
        data_type(spec.table[theirs].type) is source.field(ours).dtype for ours, theirs in spec.on
    )


@dataclass(frozen=True, eq=False)
class ArrayLookup:
    """``condition`` says which events stay (None: all), ``columns`` compute what the table adds."""

    spec: LookupSpec
    target: Layout

    @cached_property
    def condition(self) -> Column | None:
        if self.spec.left:
            return None
        if self._matched.all():
            return fn.isnotnull(self._place)
        return fn.coalesce(self._get(self._matched), fn.lit(False))

    @cached_property
    def columns(self) -> dict[str, Column]:
        return {name: self._value(theirs) for name, theirs in self.spec.columns if name in self.target}

    @cached_property
    def _low_high(self) -> tuple[int, int]:
        return _bounds(self.spec.table[self.spec.on[0][1]])

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        keys: NDArray[Any] = self.spec.table[self.spec.on[0][1]].to_numpy()
        return keys.astype(np.int64) - self._low_high[0]

    @cached_property
    def _matched(self) -> NDArray[np.bool_]:
        low, high = self._low_high
        matched = np.zeros(high - low + 1, np.bool_)
        matched[self._places] = True
        return matched

    @cached_property
    def _place(self) -> Column:
        """The event's place in the arrays; null outside of them."""
        low, high = self._low_high
        key = named(self.spec.on[0][0]).cast("bigint")
        first, last = constant(low, DataType.INT64), constant(high, DataType.INT64)
        return fn.when((key >= first) & (key <= last), (key - first).cast("int"))

    def _value(self, theirs: str) -> Column:
        column = self.spec.table[theirs]
        dtype = data_type(column.type)
        assert dtype is not None
        if dtype is DataType.TIMESTAMP:
            column = column.cast(pa.int64())
        valid = column.is_valid().to_numpy()
        filled: Any = column.fill_null(False if dtype is DataType.BOOL else 0)
        values = np.zeros(len(self._matched), dtype.numpy)
        values[self._places] = filled.to_numpy()
        value = self._get(values)
        if dtype is DataType.TIMESTAMP:
            value = fn.timestamp_micros(value)
        known = self._matched.copy()
        known[self._places] = valid
        # after the condition every event has a match
        has_value = known.all() or (not self.spec.left and bool(valid.all()))
        return value if has_value else fn.when(self._get(known), value)

    def _get(self, values: NDArray[Any]) -> Column:
        return fn.get(array_of(values), self._place)


def array_of(values: NDArray[Any]) -> Column:
    """Numbers or booleans as a constant array.

    As a text that Spark takes apart when it optimises the plan: an array of literals is a tree with a branch
    per element, through which every rule goes in every batch.
    """
    text = ",".join(map(str, values.tolist()))
    return fn.split(fn.lit(text), ",").cast(f"array<{_SPARK_TYPES[values.dtype.name]}>")


@dataclass(frozen=True, eq=False)
class JoinLookup:
    """Joins with the table, which is made a DataFrame once and broadcast in every batch."""

    spec: LookupSpec
    target: Layout

    def join(self, frame: DataFrame) -> tuple[DataFrame, dict[str, Column]]:
        """The joined frame, and the columns that the table adds."""
        table = self._table(frame.sparkSession)
        # null equals nothing; NaN equals NaN and -0.0 equals 0.0, as everywhere in Spark
        on = [named(ours) == named(f"$on.{place}") for place, (ours, _) in enumerate(self.spec.on)]
        joined = frame.join(fn.broadcast(table), on, "left" if self.spec.left else "inner")
        return joined, {name: named(f"$take.{name}") for name, _ in self._taken}

    @property
    def _taken(self) -> list[tuple[str, str]]:
        return [(name, theirs) for name, theirs in self.spec.columns if name in self.target]

    def _table(self, spark: SparkSession) -> DataFrame:
        kept = self.__dict__.setdefault("_tables", {})
        if spark not in kept:
            kept.clear()
            kept[spark] = self._made(spark)
        return cast(DataFrame, kept[spark])

    def _made(self, spark: SparkSession) -> DataFrame:
        table = self.spec.table
        wanted = [(f"$on.{place}", theirs) for place, (_, theirs) in enumerate(self.spec.on)]
        wanted += [(f"$take.{name}", theirs) for name, theirs in self._taken]
        arrays: dict[str, Any] = {}
        columns: list[Column] = []
        for name, theirs in wanted:
            is_time = pa.types.is_timestamp(table[theirs].type)
            arrays[name] = table[theirs].cast(pa.int64()) if is_time else table[theirs]
            column = named(name)
            columns.append(fn.timestamp_micros(column).alias(name) if is_time else column)
        return spark.createDataFrame(pa.table(arrays)).select(columns)


def _bounds(keys: Any) -> tuple[int, int]:
    found: Any = pc.min_max(keys)
    return found["min"].as_py(), found["max"].as_py()
