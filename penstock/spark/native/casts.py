"""Casts between column types, written for Spark: timestamps by microseconds, strings as they parse here."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from penstock.query.types import DataType

#: How Spark calls each type.
SPARK_TYPES = {
    DataType.BOOL: "boolean",
    DataType.INT32: "int",
    DataType.INT64: "bigint",
    DataType.FLOAT32: "float",
    DataType.FLOAT64: "double",
    DataType.TIMESTAMP: "timestamp",
    DataType.STRING: "string",
}

# What Python's str.strip takes away. Spark's own cast takes control characters away as well.
_SPACE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*"
_INTEGER = rf"\A{_SPACE}([+-]?[0-9]+){_SPACE}\z"
_DECIMAL = rf"\A{_SPACE}([+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?){_SPACE}\z"


def cast(column: Column, source: DataType, target: DataType) -> Column:
    """``column`` of type ``source`` as ``target``. With ANSI mode off Spark wraps and saturates as we do."""
    if source is target:
        return column
    if source is DataType.STRING:
        return _parse(column, target)
    if source is DataType.TIMESTAMP:
        return fn.unix_micros(column)  # Spark's own cast would give seconds
    if target is DataType.TIMESTAMP:
        return fn.timestamp_micros(column)
    return column.cast(SPARK_TYPES[target])


def _parse(text: Column, target: DataType) -> Column:
    """A string as a number; what does not match is '' by then, and '' casts to null."""
    if target.is_integer:
        return fn.regexp_extract(text, _INTEGER, 1).cast(SPARK_TYPES[target])
    # float32 goes through float64 on every runtime, so that all round twice
    return fn.regexp_extract(text, _DECIMAL, 1).cast("double").cast(SPARK_TYPES[target])
