"""Batch functions in the reference interpreter: called with one event at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.query.steps import BatchSpec
from penstock.query.types import DataType, Schema

_ARROW = {
    DataType.BOOL: pa.bool_(),
    DataType.INT32: pa.int32(),
    DataType.INT64: pa.int64(),
    DataType.FLOAT32: pa.float32(),
    DataType.FLOAT64: pa.float64(),
    DataType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    DataType.STRING: pa.string(),
}


def run_batch_function(
    spec: BatchSpec, row: dict[str, Any], schema: Schema, result: Schema
) -> tuple[list[dict[str, Any]], bool]:
    """The rows that the function makes of a batch with this one event, and whether it gave ``_row``."""
    given = _arrow_batch(row, schema) if spec.arrow else _numpy_columns(row, schema)
    made = spec.function(given)
    columns = {name: made.column(name) for name in made.schema.names} if spec.arrow else dict(made)
    has_rows = columns.pop("_row", None) is not None
    values = {name: _plain(column, result[name].dtype) for name, column in columns.items()}
    count = max(map(len, values.values()))
    return [{name: column[index] for name, column in values.items()} for index in range(count)], has_rows


def _arrow_batch(row: dict[str, Any], schema: Schema) -> pa.RecordBatch:
    arrays = [pa.array([row[field.name]], _ARROW[field.dtype]) for field in schema]
    fields = [pa.field(field.name, _ARROW[field.dtype], field.nullable) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _numpy_columns(row: dict[str, Any], schema: Schema) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for field in schema:
        dtype = np.dtype(object) if field.dtype is DataType.STRING else field.dtype.numpy
        value = row[field.name]
        if field.nullable and field.dtype is not DataType.STRING:
            filled = [0 if value is None else value]
            columns[field.name] = np.ma.masked_array(filled, [value is None], dtype)
        else:
            columns[field.name] = np.array([value], dtype)
    return columns


def _plain(column: Any, dtype: DataType) -> list[Any]:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        if dtype is DataType.TIMESTAMP:
            column = column.cast(pa.int64())
        return list(column.to_pylist())
    return list(column.tolist())  # a masked value becomes None
