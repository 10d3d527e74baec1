"""Numpy columns as batch functions see them: copied from a block, and checked when they come back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.operators.run.rows import converter, to_columns
from penstock.query.types import DataType, Field


def numpy_from_columns(
    columns: Columns, start: int, stop: int, layout: Layout, strings: StringPool
) -> dict[str, NDArray[Any]]:
    """The visible columns of events [start, stop), copied.

    Strings are object arrays of str, None where null; a nullable column of another type is a masked array.
    """
    result: dict[str, NDArray[Any]] = {}
    for field in layout.visible:
        data = columns[layout.data(field.name)][start:stop]
        place = layout.nulls(field.name)
        nulls = None if place is None else columns[place][start:stop]
        if field.dtype is DataType.STRING:
            result[field.name] = _texts(data, nulls, strings)
        elif nulls is None:
            result[field.name] = data.copy()
        else:
            result[field.name] = np.ma.MaskedArray(data.copy(), nulls.copy())
    return result


def plain_column(
    array: NDArray[Any], field: Field, strings: StringPool
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The data of a returned column and where it is null (None: nowhere).

    Raises ``ValueError(what it got, in which row)`` where a value does not fit.
    """
    if array.ndim != 1:
        raise ValueError(f"an array of {array.ndim} dimensions", 0)
    nulls: NDArray[np.bool_] | None = None
    if isinstance(array, np.ma.MaskedArray):
        nulls = np.ma.getmaskarray(array)
        array = array.data
        if not nulls.any():
            nulls = None
        elif not field.nullable:
            raise ValueError("a null", int(np.argmax(nulls)))
    if field.dtype is DataType.STRING or array.dtype.kind == "O":
        return _converted(array, nulls, field, strings)
    return _fitted(array, nulls, field), nulls


def _texts(codes: NDArray[Any], nulls: NDArray[np.bool_] | None, strings: StringPool) -> NDArray[Any]:
    distinct, inverse = np.unique(codes if nulls is None else codes[~nulls], return_inverse=True)
    words = np.array([strings.text(code) for code in distinct.tolist()], object)
    if nulls is None:
        return words[inverse]
    texts = np.full(len(codes), None, object)
    texts[~nulls] = words[inverse]
    return texts


def _converted(
    array: NDArray[Any], nulls: NDArray[np.bool_] | None, field: Field, strings: StringPool
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Value by value: strings, and whatever came as Python objects."""
    convert = converter(field)
    values: list[Any] = array.tolist()
    for row, value in enumerate(values):
        try:
            values[row] = None if nulls is not None and nulls[row] else convert(value)
        except ValueError as misfit:
            raise ValueError(str(misfit), row) from None
    made = to_columns(values, field, strings)
    return made[0], made[1] if field.nullable else None


def _fitted(array: NDArray[Any], nulls: NDArray[np.bool_] | None, field: Field) -> NDArray[Any]:
    """Whole columns at once: numbers, booleans and timestamps."""
    kind, dtype = array.dtype.kind, field.dtype
    if dtype is DataType.TIMESTAMP and kind == "M":
        if np.isnat(array).any():
            raise ValueError("NaT", int(np.argmax(np.isnat(array))))
        return array.astype("datetime64[us]").astype(np.int64)
    fits = {"b": dtype is DataType.BOOL, "i": dtype is not DataType.BOOL, "u": dtype is not DataType.BOOL}
    if not fits.get(kind, kind == "f" and dtype.is_float):
        raise ValueError(f"{array.dtype} values", 0)
    if kind in "iu" and not dtype.is_float:
        limits = np.iinfo(dtype.numpy)
        beyond = (array < limits.min) | (array > limits.max)
        if nulls is not None:
            beyond &= ~nulls
        if beyond.any():
            row = int(np.argmax(beyond))
            raise ValueError(f"{array[row]}, beyond {limits.bits} bits,", row)
    with np.errstate(over="ignore"):
        return array.astype(dtype.numpy)
