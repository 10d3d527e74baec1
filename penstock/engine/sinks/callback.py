"""Results handed to a function of the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.sinks.base import NodeSink, Writer
from penstock.engine.sinks.memory import plain_rows
from penstock.memory.layout import Columns, Layout
from penstock.query.errors import QueryError
from penstock.query.types import DataType, Schema


class Callback(NodeSink):
    """Calls ``function`` with every batch of rows; what it raises stops the run.

    Rows are a list of dicts with timestamps as integer microseconds. With ``arrow`` a
    ``pyarrow.RecordBatch``. With ``numpy`` a dict of arrays, masked where a column may hold nulls; they are
    valid during the call only.
    """

    def __init__(
        self, function: Callable[[Any], object], *, arrow: bool = False, numpy: bool = False
    ) -> None:
        if not callable(function):
            raise QueryError("a callback must be a function", detail=f"got {type(function).__name__}")
        if arrow and numpy:
            raise QueryError(
                "a callback takes rows in one form", hint="give arrow=True or numpy=True, not both"
            )
        self._function, self._arrow, self._numpy = function, arrow, numpy

    @property
    def guarantee(self) -> str:
        return "the function sees every row once; a run that starts again calls it again from the beginning"

    def open(self, schema: Schema) -> Writer:
        if self._arrow:
            return _ArrowWriter(self._function)
        return _NumpyWriter(self._function, schema) if self._numpy else _RowsWriter(self._function)


class _RowsWriter(Writer):
    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function = function

    def write(self, batch: pa.RecordBatch) -> None:
        self._function(plain_rows(batch))


class _ArrowWriter(_RowsWriter):
    def write(self, batch: pa.RecordBatch) -> None:
        self._function(batch)


class _NumpyWriter(Writer):
    def __init__(self, function: Callable[[Any], object], schema: Schema) -> None:
        self._function = function
        # Blocks hold codes of strings, which mean nothing outside: those go through Arrow.
        self.takes_columns = all(field.dtype is not DataType.STRING for field in schema)
        self._nullable = {field.name for field in schema if field.nullable}

    def write(self, batch: pa.RecordBatch) -> None:
        arrays: dict[str, NDArray[Any]] = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.int64())
            mask = column.is_null().to_numpy(zero_copy_only=False)
            if column.null_count:
                column = column.fill_null("" if pa.types.is_string(column.type) else _ZERO[column.type])
            data = column.to_numpy(zero_copy_only=False)
            arrays[name] = np.ma.MaskedArray(data, mask) if name in self._nullable else data
        self._function(arrays)

    def write_columns(self, columns: Columns, start: int, stop: int, layout: Layout) -> None:
        arrays: dict[str, NDArray[Any]] = {}
        for field in layout.visible:
            data = columns[layout.data(field.name)][start:stop]
            nulls = layout.nulls(field.name)
            arrays[field.name] = (
                data if nulls is None else np.ma.MaskedArray(data, columns[nulls][start:stop])
            )
        self._function(arrays)


_ZERO: dict[pa.DataType, Any] = {
    pa.bool_(): False,
    pa.int32(): 0,
    pa.int64(): 0,
    pa.float32(): 0.0,
    pa.float64(): 0.0,
}
