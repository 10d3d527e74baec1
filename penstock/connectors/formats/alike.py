"""Lines of JSON that a program wrote are alike: the same keys in the same order. Such lines are read by that
order, their values straight into columns, and a line that is different is left to whoever reads any JSON.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.connectors.formats.lines import RegularLines, line_ends
from penstock.memory.arrow import ArrowArray
from penstock.memory.layout import Layout
from penstock.query.types import DataType, Field, Schema

_LOOK_AT = 8  # lines, for one that tells the keys
# What a value may be; the kernel knows them by number.
_BOOL, _INT32, _INT64, _FLOAT, _STRING, _TIME, _ANY = range(7)
_KINDS = {
    DataType.BOOL: _BOOL,
    DataType.INT32: _INT32,
    DataType.INT64: _INT64,
    DataType.FLOAT32: _FLOAT,
    DataType.FLOAT64: _FLOAT,
    DataType.STRING: _STRING,
    DataType.TIMESTAMP: _TIME,
}
_AS_TEXT = (DataType.FLOAT32, DataType.FLOAT64, DataType.STRING, DataType.TIMESTAMP)
_INT64_DIGITS, _INT32_DIGITS, _FLOAT_CHARS = 18, 9, 64


def alike(chunk: bytes, schema: Schema, layout: Layout) -> RegularLines | None:
    """The columns of the lines that are like the first that is an object; None if there is none such.

    All columns of the schema are checked; those are made that the layout has, or whose texts have yet to be
    parsed.
    """
    ends = line_ends(chunk)
    keys = _keys(chunk, ends)
    if keys is None or not set(schema.names) <= set(keys):
        return None
    fields = {field.name: field for field in schema}
    try:
        spelled = [json.dumps(key, ensure_ascii=False).encode() for key in keys]
    except UnicodeEncodeError:  # half a character
        return None
    wanted = [_wanted(fields.get(key), layout) for key in keys]
    made = [fields[key] for key in keys if _wanted(fields.get(key), layout)[3]]
    places = {field.name: place for place, field in enumerate(made)}
    template = np.array(
        [
            (len(name), kind, null, places.get(key, -1), as_text)
            for key, name, (kind, null, as_text, _) in zip(keys, spelled, wanted, strict=True)
        ],
        np.int64,
    )
    count = len(ends)
    texts = np.empty((len(made), len(chunk)), np.uint8)
    numbers = np.zeros((len(made), count), np.int64)
    stops = np.zeros((len(made), count + 1), np.int32)
    nulls = np.zeros((len(made), count), np.bool_)
    lines = np.empty(count, np.int64)
    rows = _read(
        np.frombuffer(chunk, np.uint8),
        ends,
        np.frombuffer(b"".join(spelled), np.uint8),
        template,
        texts,
        numbers,
        stops,
        nulls,
        lines,
    )
    arrays: dict[str, ArrowArray] = {}
    for place, field in enumerate(made):
        mask = nulls[place, :rows] if nulls[place, :rows].any() else None
        if field.dtype in _AS_TEXT:
            arrays[field.name] = _text_array(stops[place, : rows + 1], texts[place], mask)
        else:
            arrays[field.name] = pa.array(numbers[place, :rows].astype(field.dtype.numpy), mask=mask)
    return RegularLines(arrays, None if rows == count else lines[:rows])


def _wanted(field: Field | None, layout: Layout) -> tuple[int, bool, bool, bool]:
    """Of a key: the kind of its values, whether null is one, whether they are made as texts, and at all."""
    if field is None:
        return _ANY, True, False, False
    made = field.name in layout or field.dtype is DataType.TIMESTAMP
    return _KINDS[field.dtype], field.nullable, made and field.dtype in _AS_TEXT, made


def _keys(chunk: bytes, ends: NDArray[np.int64]) -> list[str] | None:
    begin = 0
    for end in islice(ends.tolist(), _LOOK_AT):
        try:
            pairs = json.loads(chunk[begin:end], object_pairs_hook=tuple)
        except (ValueError, RecursionError):
            pairs = None
        if isinstance(pairs, tuple) and pairs:
            keys = [key for key, _ in pairs]
            return keys if len(set(keys)) == len(keys) else None
        begin = end + 1
    return None


def _text_array(
    stops: NDArray[np.int32], data: NDArray[np.uint8], mask: NDArray[np.bool_] | None
) -> ArrowArray:
    offsets: Any = np.ascontiguousarray(stops)
    texts: Any = data[: stops[-1]]
    valid: Any = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little").tobytes())
    return pa.StringArray.from_buffers(len(stops) - 1, pa.py_buffer(offsets), pa.py_buffer(texts), valid)


_OPEN, _CLOSE, _COLON, _COMMA, _QUOTE, _ESCAPE = (ord(sign) for sign in '{}:,"\\')
_MINUS, _PLUS, _POINT, _ZERO, _NINE, _EXPONENT = (ord(sign) for sign in "-+.09e")
_TRUE, _FALSE, _NULL = (np.frombuffer(word, np.uint8) for word in (b"true", b"false", b"null"))


@numba.njit(nogil=True, cache=True, boundscheck=False)
def _read(
    data: NDArray[np.uint8],
    ends: NDArray[np.int64],
    keys: NDArray[np.uint8],
    template: NDArray[np.int64],
    texts: NDArray[np.uint8],
    numbers: NDArray[np.int64],
    stops: NDArray[np.int32],
    nulls: NDArray[np.bool_],
    lines: NDArray[np.int64],
) -> int:
    """Writes a row for each line that is like the template, and its number; returns how many there are."""
    rows = begin = 0
    for line in range(len(ends)):
        end = ends[line]
        if _line(data, begin, end, keys, template, texts, numbers, stops, nulls, rows):
            lines[rows] = line
            rows += 1
        begin = end + 1
    return rows


@numba.njit(nogil=True, cache=True, boundscheck=False)
def _line(
    data: NDArray[np.uint8],
    place: int,
    end: int,
    keys: NDArray[np.uint8],
    template: NDArray[np.int64],
    texts: NDArray[np.uint8],
    numbers: NDArray[np.int64],
    stops: NDArray[np.int32],
    nulls: NDArray[np.bool_],
    row: int,
) -> bool:
    key = 0
    sign = _OPEN
    for column in range(len(template)):
        size, kind, may_be_null, target, is_text = template[column]
        place = _after(data, place, end, sign)
        if place < 0 or not _is(data, place, end, keys[key : key + size]):
            return False
        place = _after(data, place + size, end, _COLON)
        if place < 0 or place >= end:
            return False
        key += size
        sign = _COMMA
        start, value, is_null = place, 0, False
        first = data[place]
        if first == _QUOTE:
            start = place + 1
            stop = _text_end(data, start, end) if kind in (_STRING, _TIME, _ANY) else -1
            place = stop + 1
        elif first == _MINUS or _ZERO <= first <= _NINE:
            place, value = _number(data, place, end, kind)
            stop = place
        elif _is(data, place, end, _NULL):
            is_null = True
            stop = start if may_be_null else -1
            place += 4
        elif _is(data, place, end, _TRUE):
            value = 1
            place += 4
            stop = place if kind in (_BOOL, _ANY) else -1
        elif _is(data, place, end, _FALSE):
            place += 5
            stop = place if kind in (_BOOL, _ANY) else -1
        else:
            return False
        if stop < 0:
            return False
        if target >= 0:
            nulls[target, row] = is_null
            if is_text:
                into = stops[target, row]
                for k in range(start, stop):
                    texts[target, into] = data[k]
                    into += 1
                stops[target, row + 1] = into
            else:
                numbers[target, row] = value
    place = _after(data, place, end, _CLOSE)
    return place == end


@numba.njit(nogil=True, cache=True, boundscheck=False)
def _after(data: NDArray[np.uint8], place: int, end: int, sign: int) -> int:
    """What follows on the sign, which must come next; -1 without it. Blanks may stand on both sides."""
    while place < end and (data[place] == 32 or data[place] == 9):
        place += 1
    if place >= end or data[place] != sign:
        return -1
    place += 1
    while place < end and (data[place] == 32 or data[place] == 9):
        place += 1
    return place


@numba.njit(nogil=True, cache=True, boundscheck=False)
def _is(data: NDArray[np.uint8], place: int, end: int, word: NDArray[np.uint8]) -> bool:
    if place + len(word) > end:
        return False
    for k in range(len(word)):  # noqa: SIM110 - compiled
        if data[place + k] != word[k]:
            return False
    return True


@numba.njit(nogil=True, cache=True, boundscheck=False)
def _text_end(data: NDArray[np.uint8], place: int, end: int) -> int:
    """Where the closing quote stands; -1 if there is none, or something before it that must be read otherwise
    than it is written."""
    while place < end and data[place] != _QUOTE:
        if data[place] == _ESCAPE or data[place] < 32:
            return -1
        place += 1
    return place if place < end else -1


@numba.njit(nogil=True, cache=True, boundscheck=False)
def _number(data: NDArray[np.uint8], place: int, end: int, kind: int) -> tuple[int, int]:
    """Where a number ends, and its value if it is whole; -1 if it is none or may not fit the kind."""
    start, value = place, 0
    negative = data[place] == _MINUS
    if negative:
        place += 1
    digits = place
    while place < end and _ZERO <= data[place] <= _NINE:
        value = 10 * value + (data[place] - _ZERO)
        place += 1
    digits = place - digits
    if digits == 0 or (digits > 1 and data[place - digits] == _ZERO):
        return -1, 0
    if kind != _FLOAT and kind != _ANY:
        most = _INT32_DIGITS if kind == _INT32 else _INT64_DIGITS
        if digits > most or kind in (_STRING, _BOOL):
            return -1, 0
        return place, -value if negative else value  # a point may not follow: no sign of JSON is one
    if place < end and data[place] == _POINT:
        place += 1
        point = place
        while place < end and _ZERO <= data[place] <= _NINE:
            place += 1
        if place == point:
            return -1, 0
    if place < end and (data[place] | 32) == _EXPONENT:
        place += 1
        if place < end and (data[place] == _MINUS or data[place] == _PLUS):
            place += 1
        digits = place
        while place < end and _ZERO <= data[place] <= _NINE:
            place += 1
        if place == digits or place - digits > 2:
            return -1, 0
    return (place if place - start <= _FLOAT_CHARS else -1), 0
