"""Static tables for lookups: brought to Penstock's types, checked for unique keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.query.errors import QueryError
from penstock.query.inference import cast_hint
from penstock.query.steps import LookupSpec
from penstock.query.stream.joins import KeyPairs, On, key_pairs
from penstock.query.stream.projection import known_columns
from penstock.query.types import DataType, Field, Schema, unknown_column

if TYPE_CHECKING:
    import pyarrow as pa

NamePairs = tuple[tuple[str, str], ...]  # (name in the result, column of the table)


def looked_up(
    stream: Schema, table: Any, on: On, columns: Sequence[str] | Mapping[str, str] | None, how: str
) -> tuple[LookupSpec, list[Field]]:
    """A lookup and the columns that it adds."""
    if how not in ("inner", "left"):
        raise QueryError("how is 'inner' or 'left'", detail=f"got {how!r}", hint="write how='left'")
    pairs = key_pairs(on, "the table")
    known_columns([ours for ours, _ in pairs], stream, "keys")
    arrow = as_arrow(table)
    for _, theirs in pairs:
        if theirs not in arrow.column_names:
            raise _not_in_table(theirs, arrow)
    added = _added_columns(columns, arrow, pairs)
    for new, _ in added:
        if new in stream:
            raise QueryError(
                f"column '{new}' is in the stream already",
                hint=f"name the table's otherwise: columns={{'{new}_looked_up': '{new}'}}",
            )
    prepared = _prepared_table(arrow, pairs, added, stream)
    types = table_schema(prepared)
    fields = [Field(new, types[old].dtype, types[old].nullable or how == "left") for new, old in added]
    return LookupSpec(prepared, pairs, added, how == "left"), fields


def _added_columns(columns: Sequence[str] | Mapping[str, str] | None, table: Any, on: KeyPairs) -> NamePairs:
    """Which columns a lookup adds: all but the keys, those listed, or ``{new: old}``."""
    if columns is None:
        keys = {theirs for _, theirs in on}
        return tuple((name, name) for name in table.column_names if name not in keys)
    if isinstance(columns, str):
        columns = [columns]
    pairs = (
        tuple(columns.items()) if isinstance(columns, Mapping) else tuple((name, name) for name in columns)
    )
    for _, old in pairs:
        if old not in table.column_names:
            raise _not_in_table(old, table)
    return pairs


def _prepared_table(table: pa.Table, on: KeyPairs, columns: NamePairs, stream: Schema) -> pa.Table:
    """The key and result columns in types that kernels know, without rows of null keys: none match."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrays: dict[str, Any] = {}
    for ours, theirs in on:
        arrays[theirs] = _as_key(_plain_column(table, theirs), theirs, stream[ours])
    for _, old in columns:
        if old not in arrays:
            arrays[old] = _plain_column(table, old)
    result = pa.table(arrays)
    for _, theirs in on:
        result = result.filter(pc.is_valid(result[theirs]))
    result = result.combine_chunks()
    _refuse_duplicate_keys(result, [theirs for _, theirs in on])
    return result


def table_schema(table: pa.Table) -> Schema:
    """The table's columns as Penstock's types; nullable where there are nulls."""
    names = _by_arrow_type()
    return Schema(
        Field(name, names[table[name].type], table[name].null_count > 0) for name in table.column_names
    )


def as_arrow(table: Any) -> pa.Table:
    """A ``pyarrow.Table`` from one, from a dict of lists or arrays, or from a pandas DataFrame."""
    import pyarrow as pa

    try:
        if isinstance(table, pa.Table):
            return table
        if isinstance(table, Mapping):
            return pa.table({name: values for name, values in table.items()})
        if type(table).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(table, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise QueryError(
            "the table cannot be read", detail=str(error), hint="its columns must be equally long"
        ) from None
    raise QueryError(
        "not a table",
        detail=f"got a {type(table).__name__}",
        hint="pass a pyarrow.Table, a dict of lists or numpy arrays, or a pandas DataFrame",
    )


def _by_arrow_type() -> dict[Any, DataType]:
    import pyarrow as pa

    return {
        pa.bool_(): DataType.BOOL,
        pa.int32(): DataType.INT32,
        pa.int64(): DataType.INT64,
        pa.float32(): DataType.FLOAT32,
        pa.float64(): DataType.FLOAT64,
        pa.timestamp("us"): DataType.TIMESTAMP,
        pa.string(): DataType.STRING,
    }


def _plain_column(table: pa.Table, name: str) -> Any:
    """The column in the nearest type that holds all its values."""
    import pyarrow as pa
    import pyarrow.types as kinds

    column = table[name]
    kind = column.type
    if kinds.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if kind in _by_arrow_type():
        return column
    target: Any = None
    if kinds.is_int8(kind) or kinds.is_int16(kind) or kinds.is_uint8(kind) or kinds.is_uint16(kind):
        target = pa.int32()
    elif kinds.is_uint32(kind) or kinds.is_uint64(kind):
        target = pa.int64()
    elif kinds.is_float16(kind):
        target = pa.float32()
    elif kinds.is_large_string(kind) or kinds.is_string_view(kind):
        target = pa.string()
    elif kinds.is_timestamp(kind) or kinds.is_date(kind):
        target = pa.timestamp("us")
    try:
        if target is not None:
            if kinds.is_timestamp(kind) and kind.tz is not None:  # the instant counts, not its clock time
                column = column.cast(pa.int64()).cast(pa.timestamp(kind.unit))
            return column.cast(target)
        problem = f"'{name}' is {kind}"
    except pa.ArrowInvalid as error:
        problem = f"'{name}' is {kind}: {error}"
    fits = ", ".join(dtype.value for dtype in DataType)
    raise QueryError(
        "a column of the table has a type that does not fit", detail=problem, hint=f"types are {fits}"
    )


def _as_key(column: Any, name: str, ours: Field) -> Any:
    import pyarrow as pa

    theirs = _by_arrow_type()[column.type]
    if theirs is ours.dtype:
        return column
    if theirs.is_integer and ours.dtype.is_integer:
        try:
            return column.cast(pa.int32() if ours.dtype is DataType.INT32 else pa.int64())
        except pa.ArrowInvalid as error:
            problem = str(error)
    else:
        problem = f"'{ours.name}' of the stream is {ours.dtype}, '{name}' of the table is {theirs}"
    raise QueryError(
        "key types do not match",
        detail=problem,
        hint=cast_hint(ours.name, ours.dtype, theirs),
    )


def _refuse_duplicate_keys(table: pa.Table, keys: list[str]) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    only = table.select(keys)
    for index, key in enumerate(keys):
        if kinds.is_floating(only[key].type):  # -0.0 and 0.0 are one key
            zero = pc.equal(only[key], pa.scalar(0.0, only[key].type))
            only = only.set_column(index, key, pc.if_else(zero, pc.abs(only[key]), only[key]))
    counts = only.group_by(keys).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts["count_all"], pa.scalar(1)))
    if twice.num_rows:
        row = ", ".join(f"{key} = {twice[key][0].as_py()!r}" for key in keys)
        raise QueryError(
            "the table has a key more than once",
            detail=f"got {twice['count_all'][0].as_py()} rows with {row}",
            hint="a lookup gives one row per event: make the keys unique, or explode",
        )


def _not_in_table(name: str, table: Any) -> QueryError:
    error = unknown_column(name, table.column_names)
    error.what = f"unknown column '{name}' of the table"
    return error
