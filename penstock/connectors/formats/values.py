"""Typed columns from columns of text, with the places whose text does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.memory.arrow import ArrowArray, arrow_type, numpy_from_arrow
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.types import DataType, Field, Schema

Mask = NDArray[np.bool_]


@dataclass
class Decoded:
    """The good rows of a batch in a layout's visible columns, and the bad rows with reasons, in order."""

    columns: Columns
    count: int
    rejected: list[tuple[int, str]] = field(default_factory=list)


def decode(
    arrays: Mapping[str, ArrowArray], rows: int, schema: Schema, layout: Layout, strings: StringPool
) -> Decoded:
    """Rows from Arrow columns; a text column that should be of another type is parsed.

    All columns of the schema are checked, also those that the layout leaves out: whether a record is bad must
    not depend on which queries run.
    """
    reasons: dict[int, str] = {}
    typed: dict[str, ArrowArray] = {}
    for column in schema:
        array = arrays[column.name]
        if column.dtype is not DataType.STRING and pa.types.is_string(array.type):
            values, unfit = parse_text(array, column.dtype)
            for row in np.flatnonzero(unfit).tolist():
                reasons.setdefault(
                    row, f"column '{column.name}': {array[row].as_py()!r:.100} is not {_a(column.dtype)}"
                )
        else:
            values, unfit = array, np.zeros(0, np.bool_)
        if not column.nullable and array.null_count:
            for row in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
                reasons.setdefault(row, null_reason(column))
        typed[column.name] = values
    good: ArrowArray | None = None
    if reasons:
        keep = np.ones(rows, np.bool_)
        keep[list(reasons)] = False
        good = pa.array(keep)
    columns: list[NDArray[Any]] = []
    count = rows - len(reasons)
    for column in layout.visible:
        array = typed[column.name] if good is None else typed[column.name].filter(good)
        data, nulls = numpy_from_arrow(array, column, strings)
        columns.append(data)
        if column.nullable:
            columns.append(np.zeros(count, np.bool_) if nulls is None else nulls)
    return Decoded(tuple(columns), count, sorted(reasons.items()))


def null_reason(column: Field) -> str:
    return f"column '{column.name}': null, but the schema has {column.dtype} and not {column.dtype}?"


def parse_text(array: ArrowArray, dtype: DataType) -> tuple[ArrowArray, Mask]:
    """Values of ``dtype`` (timestamps as int64), and where the text is none; nulls stay nulls.

    Each text is judged by itself: the ways to the result differ in speed only.
    """
    if dtype is DataType.TIMESTAMP:
        return _parse_times(array)
    # Through float64, as JSON numbers go: a decimal must not mean two float32 in two formats.
    kind = pa.float64() if dtype is DataType.FLOAT32 else arrow_type(dtype)
    values, unfit = _cast(array, kind)
    return (values.cast(pa.float32(), safe=False) if dtype is DataType.FLOAT32 else values), unfit


_NAIVE = pa.timestamp("us")
_ZONED = pa.timestamp("us", tz="UTC")
_IS_NUMBER = r"^-?([0-9]+|0[xX][0-9a-fA-F]+)$"  # all that Arrow could take for an integer
_HAS_ZONE = r"[0-9] *(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_FEW = 4
_HAS_TIME = r"[0-9]{2}[T ][0-9]{2}"


def _parse_times(array: ArrowArray) -> tuple[ArrowArray, Mask]:
    """ISO 8601 with or without a zone, else UTC; or whole microseconds since 1970."""
    nothing = np.zeros(len(array), np.bool_)
    for kind in (pa.int64(), _NAIVE, _ZONED):  # a text is of one kind at most
        try:
            # A few tell: Arrow makes a message of every text that is not of the kind it is asked for.
            array[:_FEW].cast(kind)
            return array.cast(kind).cast(pa.int64()), nothing
        except pa.ArrowInvalid:
            continue
    # Several kinds of text, or some that is none: each kind by itself. Digits beyond microseconds are cut
    # off.
    trimmed = pc.replace_substring_regex(pc.utf8_trim_whitespace(array), r"(\.[0-9]{6})[0-9]+", r"\1")
    is_number = pc.match_substring_regex(trimmed, _IS_NUMBER)
    is_zoned = pc.and_(
        pc.match_substring_regex(trimmed, _HAS_TIME), pc.match_substring_regex(trimmed, _HAS_ZONE)
    )
    number = is_number.fill_null(False).to_numpy(zero_copy_only=False)
    zoned = is_zoned.fill_null(False).to_numpy(zero_copy_only=False) & ~number
    micros = np.zeros(len(array), np.int64)
    unfit = nothing
    for chosen, kind in ((number, pa.int64()), (zoned, _ZONED), (~number & ~zoned, _NAIVE)):
        rows = np.flatnonzero(chosen)
        if rows.size:
            values, wrong = _cast_each(trimmed.take(pa.array(rows)), kind)
            micros[rows] = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            unfit[rows] = wrong
    return pa.array(micros, mask=array.is_null().to_numpy(zero_copy_only=False)), unfit


def _cast(array: ArrowArray, kind: pa.DataType) -> tuple[ArrowArray, Mask]:
    try:
        return array.cast(kind), np.zeros(len(array), np.bool_)
    except pa.ArrowInvalid:
        pass
    if pa.types.is_boolean(kind):
        return _cast_each(array, kind)
    # Numbers that are as plain as most are, at once; what is left one by one.
    from penstock.connectors.formats.plain import plain_numbers  # brings a compiler

    plain = plain_numbers(array, kind)
    odd = np.flatnonzero(~plain)
    values = pc.if_else(pa.array(plain), array, pa.scalar(None, pa.string())).cast(kind)
    odd_values, odd_unfit = _cast_each(array.take(pa.array(odd)), kind)
    unfit = np.zeros(len(array), np.bool_)
    unfit[odd] = odd_unfit
    return pc.replace_with_mask(values, pa.array(~plain), odd_values), unfit


def _cast_each(array: ArrowArray, kind: pa.DataType) -> tuple[ArrowArray, Mask]:
    """Halved until the texts that do not fit stand alone: costs per bad text, not per text."""
    trimmed = pc.utf8_trim_whitespace(array)
    unfit = np.zeros(len(array), np.bool_)
    parts: list[ArrowArray] = [pa.array([], kind)]
    ranges = [(0, len(array))]
    while ranges:
        low, high = ranges.pop()
        try:
            parts.append(trimmed.slice(low, high - low).cast(kind))
        except pa.ArrowInvalid:
            if high - low == 1:
                unfit[low] = True
                parts.append(pa.array([None], kind))
            else:
                middle = (low + high) // 2
                ranges += [(middle, high), (low, middle)]
    return pa.concat_arrays(parts), unfit


def _a(dtype: DataType) -> str:
    return f"an {dtype}" if dtype.value[0] == "i" else f"a {dtype}"
