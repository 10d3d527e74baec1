"""Columns as users give them, brought to Arrow and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.memory.arrow import ArrowArray, arrow_type, schema_from_arrow, type_fits
from penstock.query.errors import QueryError
from penstock.query.types import Field, Schema


def arrow_columns(data: Any, schema: Schema | None) -> dict[str, ArrowArray]:
    """Every column as one Arrow array; those the schema names are brought to its type."""
    if isinstance(data, pa.Table):
        columns: dict[str, Any] = {name: data.column(name) for name in data.column_names}
    elif isinstance(data, Mapping):
        columns = dict(data)
    elif hasattr(data, "columns") and hasattr(data, "dtypes") and not hasattr(data, "to_arrow"):
        return arrow_columns(pa.Table.from_pandas(data, preserve_index=False), schema)
    elif hasattr(data, "to_arrow"):  # Polars, DuckDB and others
        return arrow_columns(data.to_arrow(), schema)
    else:
        raise QueryError(
            "columns must be a dict of arrays, an Arrow table or a data frame",
            detail=f"got {type(data).__name__}",
        )
    if schema is None:
        return {name: _arrow_array(name, values, None) for name, values in columns.items()}
    missing = [name for name in schema.names if name not in columns]
    if missing:
        raise QueryError(
            f"column '{missing[0]}' is in the schema but not in the data",
            hint=f"columns here: {', '.join(columns)}",
        )
    return {field.name: _arrow_array(field.name, columns[field.name], field) for field in schema}


def _arrow_array(name: str, values: Any, field: Field | None) -> ArrowArray:
    try:
        if isinstance(values, pa.ChunkedArray | pa.Array):
            array = values
        elif isinstance(values, np.ndarray) and values.dtype != np.dtype(object):
            array = pa.array(np.ascontiguousarray(values))
        else:
            array = pa.array(list(values), None if field is None else arrow_type(field.dtype))
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if field is not None and not type_fits(array.type, field):
            array = array.cast(arrow_type(field.dtype))
        return array
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        ValueError,
        TypeError,
        OverflowError,
    ) as error:
        wanted = f"{field.dtype}" if field is not None else "one type"
        raise QueryError(
            f"column '{name}' does not fit", detail=f"its values are not all {wanted}: {error}"
        ) from None


def inferred_schema(arrays: dict[str, ArrowArray]) -> Schema:
    """The schema that the data suggests."""
    for name, array in arrays.items():
        if pa.types.is_null(array.type):
            raise QueryError(
                f"cannot tell the type of column '{name}'", detail="it has no value", hint="give schema="
            )
    with_nulls = [name for name, array in arrays.items() if _null_count(array)]
    return schema_from_arrow(pa.schema([(name, array.type) for name, array in arrays.items()]), with_nulls)


def check_columns(arrays: dict[str, ArrowArray], schema: Schema, rows: int) -> None:
    """Raises ``QueryError`` unless the columns are of one length and fit the schema."""
    for field in schema:
        array = arrays[field.name]
        if len(array) != rows:
            raise QueryError(
                "columns have different lengths",
                detail=f"'{schema.names[0]}' has {rows} rows, '{field.name}' has {len(array)}",
            )
        if _null_count(array) and not field.nullable:
            raise QueryError(
                f"column '{field.name}' has nulls", hint=f"write '{field.dtype}?' in the schema to allow them"
            )


def _null_count(array: ArrowArray) -> int:
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        array = array.dictionary_decode()
    return int(array.null_count)
