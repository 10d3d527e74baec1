"""Results handed to a function of the user."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.connectors.memory.sink import plain_rows
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer, whole_batch
from penstock.memory.layout import Columns, Layout
from penstock.query.errors import QueryError, RunError
from penstock.query.types import DataType, Schema


class Callback(NodeSink):
    """Calls ``function`` with every batch of rows; what it raises stops the run.

    Rows are a list of dicts with timestamps as integer microseconds. With ``arrow`` a
    ``pyarrow.RecordBatch``. With ``numpy`` a dict of arrays, masked where a column may hold nulls; they are
    valid during the call only.

    On Spark the function is called once for every batch that has rows, on the driver. If it takes a second
    parameter, one without a default or one called ``batch_id``, it is given the batch's number there. After
    a failure a number may come again, maybe with other rows, which replace those it came with before.
    ``def f(rows, batch_id=None)`` runs on both.
    """

    at_once = True

    def __init__(self, function: Callable[..., object], *, arrow: bool = False, numpy: bool = False) -> None:
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

    @property
    def batch_guarantee(self) -> str:
        return (
            "at least once: the function may be called again with rows of the batch in which the run failed; "
            "exactly once if it replaces what it has of that batch id, since the rows may be others then"
        )

    def open(self, schema: Schema) -> Writer:
        wanted = _second_parameter(self._function)
        if wanted is not None and wanted.default is inspect.Parameter.empty:
            raise RunError(
                "this callback wants a batch's number, which only Spark has: its parameter "
                f"'{wanted.name}' has no default; write {wanted.name}=None to run on both"
            )
        return self._writer(self._function, schema)

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        numbered = _second_parameter(self._function) is not None
        return _CallbackBatches(self._function, numbered, lambda call: self._writer(call, schema))

    def _writer(self, function: Callable[..., object], schema: Schema) -> Writer:
        if self._arrow:
            return _ArrowWriter(function)
        return _NumpyWriter(function, schema) if self._numpy else _RowsWriter(function)


class _RowsWriter(Writer):
    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    def write(self, batch: pa.RecordBatch) -> None:
        self._function(plain_rows(batch))


class _ArrowWriter(_RowsWriter):
    def write(self, batch: pa.RecordBatch) -> None:
        self._function(batch)


class _NumpyWriter(Writer):
    def __init__(self, function: Callable[..., object], schema: Schema) -> None:
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


class _CallbackBatches(BatchWriter):
    def __init__(
        self,
        function: Callable[..., object],
        numbered: bool,
        writer: Callable[[Callable[..., object]], Writer],
    ) -> None:
        self._function, self._numbered = function, numbered
        self._batch_id = -1
        self._writer = writer(self._call)

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        self._batch_id = batch_id
        self._writer.write(whole_batch(rows))

    def delivered(self) -> Mapping[str, Any]:
        return {"kind": "callback"}

    def _call(self, rows: object) -> None:
        if self._numbered:
            self._function(rows, self._batch_id)
        else:
            self._function(rows)


def _second_parameter(function: Callable[..., object]) -> inspect.Parameter | None:
    """The one that takes the batch's number. A default is often a value to remember, unless named so."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some that are written in C do not say
        return None
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) < 2 or parameters[1].kind not in places:
        return None
    second = parameters[1]
    return second if second.default is inspect.Parameter.empty or second.name == "batch_id" else None


_ZERO: dict[pa.DataType, Any] = {
    pa.bool_(): False,
    pa.int32(): 0,
    pa.int64(): 0,
    pa.float32(): 0.0,
    pa.float64(): 0.0,
}
