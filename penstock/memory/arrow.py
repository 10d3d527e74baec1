"""Arrow batches ↔ a layout's columns: types, schemas and rows, whole columns at a time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError, RunError
from penstock.query.types import DataType, Field, Schema

#: ``pyarrow.Array`` of any type. The published type stubs know too little of it to be of use.
ArrowArray: TypeAlias = Any

_TO_ARROW: dict[DataType, pa.DataType] = {
    DataType.BOOL: pa.bool_(),
    DataType.INT32: pa.int32(),
    DataType.INT64: pa.int64(),
    DataType.FLOAT32: pa.float32(),
    DataType.FLOAT64: pa.float64(),
    DataType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    DataType.STRING: pa.string(),
}

# The narrowest of our types that holds every value of the Arrow type.
_FROM_ARROW: dict[pa.DataType, DataType] = {
    pa.bool_(): DataType.BOOL,
    pa.int8(): DataType.INT32,
    pa.int16(): DataType.INT32,
    pa.int32(): DataType.INT32,
    pa.uint8(): DataType.INT32,
    pa.uint16(): DataType.INT32,
    pa.int64(): DataType.INT64,
    pa.uint32(): DataType.INT64,
    pa.float16(): DataType.FLOAT32,
    pa.float32(): DataType.FLOAT32,
    pa.float64(): DataType.FLOAT64,
    pa.string(): DataType.STRING,
    pa.large_string(): DataType.STRING,
    pa.string_view(): DataType.STRING,
    pa.date32(): DataType.TIMESTAMP,
    pa.date64(): DataType.TIMESTAMP,
}

# What else fits into each type without loss.
_WIDENS: dict[DataType, tuple[DataType, ...]] = {
    DataType.INT64: (DataType.INT32,),
    DataType.FLOAT64: (DataType.FLOAT32,),
    DataType.TIMESTAMP: (DataType.INT64,),  # microseconds since 1970
}


def batch_from_columns(
    columns: Columns, start: int, stop: int, layout: Layout, strings: StringPool
) -> pa.RecordBatch:
    """The rows [start, stop) with their visible columns. Copied: the block may be recycled afterwards."""
    schema = layout.visible
    arrays: list[ArrowArray] = []
    for field in schema:
        data = columns[layout.data(field.name)][start:stop]
        place = layout.nulls(field.name)
        nulls = None if place is None else columns[place][start:stop]
        if field.dtype is DataType.STRING:
            arrays.append(strings.decode(data, nulls))
        elif nulls is None and field.dtype is not DataType.BOOL:  # the same bytes: a quarter of the time
            values: Any = data.copy()
            kind = _TO_ARROW[field.dtype]
            arrays.append(pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)]))
        else:
            array: ArrowArray = pa.array(data.copy(), mask=nulls)
            arrays.append(array.cast(_TO_ARROW[field.dtype]) if field.dtype is DataType.TIMESTAMP else array)
    if not arrays:
        empty: Any = pa.array([{}] * (stop - start), pa.struct([]))
        return pa.RecordBatch.from_struct_array(empty)
    return pa.RecordBatch.from_arrays(arrays, schema=_schema(tuple(schema)))


def write_batch(
    batch: pa.RecordBatch,
    offset: int,
    count: int,
    layout: Layout,
    columns: Columns,
    start: int,
    strings: StringPool,
) -> None:
    """Writes the rows [offset, offset + count) into ``columns[start:]``: the visible columns, by name.

    Raises ``RunError`` if a column is missing, does not fit, or has nulls where the layout allows none.
    """
    stop = start + count
    for field in layout.visible:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            raise RunError(f"column '{field.name}' is missing: the batch has {', '.join(batch.schema.names)}")
        data, nulls = numpy_from_arrow(batch.column(place).slice(offset, count), field, strings)
        columns[layout.data(field.name)][start:stop] = data
        mask = layout.nulls(field.name)
        if mask is not None:
            columns[mask][start:stop] = False if nulls is None else nulls


def numpy_from_arrow(
    array: ArrowArray, field: Field, strings: StringPool
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The data of one column, and where it is null (None: nowhere). Null places hold 0.

    May share memory with ``array``.
    """
    if not type_fits(array.type, field):
        raise RunError(
            f"column '{field.name}' does not fit: it is {array.type}, the stream has {field.dtype}"
        )
    if pa.types.is_dictionary(array.type) and (
        field.dtype is not DataType.STRING or array.dictionary.null_count
    ):
        array = array.dictionary_decode()
    nulls: NDArray[np.bool_] | None = None
    if array.null_count:
        if not field.nullable:
            raise RunError(
                f"null in column '{field.name}': it is declared without nulls; "
                f"write '{field.dtype}?' in the schema to allow them"
            )
        nulls = array.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), field.dtype.numpy), nulls
    if field.dtype is DataType.STRING:
        return strings.encode(_plain_strings(array)), nulls
    if field.dtype is DataType.TIMESTAMP:
        array = _microseconds(array)
    if nulls is not None:
        array = array.fill_null(False if field.dtype is DataType.BOOL else 0)
    return array.to_numpy(zero_copy_only=False).astype(field.dtype.numpy, copy=False), nulls


def arrow_type(dtype: DataType) -> pa.DataType:
    """The Arrow type that results carry."""
    return _TO_ARROW[dtype]


def arrow_schema(schema: Iterable[Field]) -> pa.Schema:
    """The Arrow schema of results with these columns."""
    return pa.schema([pa.field(f.name, _TO_ARROW[f.dtype], f.nullable) for f in schema])


@lru_cache(maxsize=256)
def _schema(fields: tuple[Field, ...]) -> pa.Schema:
    return arrow_schema(fields)


def data_type(kind: pa.DataType) -> DataType | None:
    """The type that holds values of an Arrow type, or None if there is none."""
    if pa.types.is_dictionary(kind):
        return data_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return DataType.TIMESTAMP
    return _FROM_ARROW.get(kind)


def type_fits(kind: pa.DataType, field: Field) -> bool:
    """Whether every value of the Arrow type is a value of the field's type."""
    if pa.types.is_null(kind):
        return True
    dtype = data_type(kind)
    return dtype is field.dtype or dtype in _WIDENS.get(field.dtype, ())


def schema_from_arrow(schema: pa.Schema, nullable: Iterable[str] | None = None) -> Schema:
    """The schema that data of an Arrow schema has here; ``nullable`` names the columns with nulls (None: as
    declared).
    """
    allowed = None if nullable is None else set(nullable)
    fields: list[Field] = []
    for field in schema:
        dtype = data_type(field.type)
        if dtype is None:
            raise QueryError(
                f"column '{field.name}' has a type that streams do not have",
                detail=f"Arrow type {field.type}",
                hint=f"cast it to {', '.join(kind.value for kind in DataType)}, or leave it out: schema=",
            )
        fields.append(Field(field.name, dtype, field.nullable if allowed is None else field.name in allowed))
    return Schema(fields)


def _plain_strings(array: ArrowArray) -> ArrowArray:
    if pa.types.is_dictionary(array.type):
        return array
    return array if array.type == pa.string() else array.cast(pa.string())


def _microseconds(array: ArrowArray) -> ArrowArray:
    """Timestamps of any unit as int64 microseconds, rounded down; without a zone they are UTC."""
    kind = array.type
    if pa.types.is_int64(kind):
        return array
    if pa.types.is_date(kind):
        array = array.cast(pa.timestamp("ms"))
    elif pa.types.is_timestamp(kind) and kind.unit == "ns":
        nanoseconds = array.cast(pa.int64())
        micros = np.floor_divide(nanoseconds.fill_null(0).to_numpy(zero_copy_only=False), 1_000)
        mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        return pa.array(micros, mask=mask)
    elif not pa.types.is_timestamp(kind):  # narrower integers
        return pc.cast(array, pa.int64())
    try:
        return array.cast(pa.timestamp("us", tz=getattr(array.type, "tz", None))).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise RunError(f"a time is beyond the range of microseconds since 1970: {error}") from None
