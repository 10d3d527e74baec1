"""Rows as Python dicts, for functions that users write: read from columns, checked, and written back."""

from __future__ import annotations

import inspect
import math
import struct
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from penstock.memory.layout import LATE, ORDER, SUB, TIME, Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import FunctionError
from penstock.query.types import DataType, Field, Schema
from penstock.query.user_functions import Group

#: Rows made from one input row are numbered ``$sub`` = input ``$sub`` * SUB_ROWS + index (wrapping).
SUB_ROWS = 1 << 20

#: The one NaN of keys: a NaN equals no other in Python, but a dict finds an object that *is* the same.
NAN = float("nan")

_QUERIES_SHOWN = 3
_LONGEST_SUBJECT = 1000  # characters of an offending event that an error shows


_RAISED = "raised "


class RowReader:
    """Reads rows of columns as dicts of Python values. Null is None; a timestamp is an int of microseconds.

    ``names`` are the columns to read, by default all visible ones. A dict costs about a microsecond.
    """

    __slots__ = ("_columns", "_names", "_strings")

    def __init__(self, layout: Layout, strings: StringPool, names: Sequence[str] | None = None) -> None:
        self._names = tuple(layout.visible.names if names is None else names)
        self._strings = strings
        self._columns = [
            (layout.data(name), layout.nulls(name), layout.field(name).dtype is DataType.STRING)
            for name in self._names
        ]

    def values(self, columns: Columns, rows: slice | NDArray[np.int64]) -> list[list[Any]]:
        """For each column its values in these rows."""
        lists = []
        for data, nulls, is_string in self._columns:
            values: list[Any] = columns[data][rows].tolist()
            if nulls is None:
                if is_string:
                    values = [self._strings.text(code) for code in values]
            else:
                masked = zip(values, columns[nulls][rows].tolist(), strict=True)
                if is_string:
                    values = [None if null else self._strings.text(code) for code, null in masked]
                else:
                    values = [None if null else value for value, null in masked]
            lists.append(values)
        return lists

    def tuples(self, columns: Columns, rows: slice | NDArray[np.int64]) -> list[tuple[Any, ...]]:
        """These rows as tuples."""
        if not self._columns:
            return [()] * (rows.stop - rows.start if isinstance(rows, slice) else len(rows))
        return list(zip(*self.values(columns, rows), strict=True))

    def read(self, columns: Columns, rows: slice | NDArray[np.int64]) -> list[dict[str, Any]]:
        """These rows as dicts, made anew: whoever gets them may change them."""
        names = self._names
        return [dict(zip(names, row, strict=True)) for row in self.tuples(columns, rows)]

    def keys(self, columns: Columns, rows: slice | NDArray[np.int64]) -> list[tuple[Any, ...]]:
        """These rows as keys: equal keys are equal tuples, also for NaN and −0.0."""
        if not self._columns:
            return self.tuples(columns, rows)
        lists = [
            values if columns[data].dtype.kind != "f" else [_canonical(value) for value in values]
            for (data, _, _), values in zip(self._columns, self.values(columns, rows), strict=True)
        ]
        return list(zip(*lists, strict=True))


class UserFunction:
    """A function of a user's. Whatever goes wrong in it becomes a ``FunctionError`` that names step,
    function and event.

    The ``subject`` of a call is what the function was called for: an event, a group, or a text that names it.
    """

    __slots__ = ("_function", "_queries", "name", "step")

    def __init__(
        self,
        step: str,
        function: Callable[..., Any],
        name: str | None = None,
        queries: Iterable[str] = (),
    ) -> None:
        self.step = step
        self._queries = sorted(queries)
        self.name = name or getattr(function, "__qualname__", None) or type(function).__qualname__
        self._function = function

    def rows(self, subject: object, *arguments: Any) -> list[Any]:
        """The rows that it returns, or yields, for these arguments; None counts as no rows."""
        try:
            result = self._function(*arguments)
            if result is None:
                return []
            if isinstance(result, Iterable) and not isinstance(result, dict | str | bytes):
                return list(result)
        except Exception as error:
            raise self.raised(error, subject) from error
        raise self.error(f"returned {_kind(result)}", subject, "return a list of dicts, one per row")

    def raised(self, error: Exception, subject: object) -> FunctionError:
        """The error that says that this function raised another."""
        said = " ".join(str(error).split())  # in one line: that is what Spark's traces hand on
        return self.error(f"{_RAISED}{type(error).__name__}: {said}", subject, line=self._line(error))

    def error(
        self, what: str, subject: object, hint: str | None = None, line: str | None = None
    ) -> FunctionError:
        """The error that says that this function did ``what``, where it is written, and for which event."""
        place = f"step '{self.step}'{self._of_queries()}{self._at(line)}"
        text = f"function '{self.name}' {what}: {place}, {_description(subject)}"
        error = FunctionError(f"{text}; {hint}" if hint else text)
        error.what = what.removeprefix(_RAISED)
        return error

    def _of_queries(self) -> str:
        shown = [f"'{name}'" for name in self._queries[:_QUERIES_SHOWN]]
        more = len(self._queries) - len(shown)
        if not shown:
            return ""
        return f" of {'query' if len(self._queries) == 1 else 'queries'} {', '.join(shown)}" + (
            f" and {more} more" if more else ""
        )

    def _at(self, line: str | None) -> str:
        code = getattr(inspect.unwrap(self._function), "__code__", None)
        if line is None and code is not None:
            line = f"{code.co_filename}:{code.co_firstlineno}"
        return "" if line is None else f" at {line}"

    def _line(self, error: Exception) -> str | None:
        """The innermost line of the user's own file that the error went through."""
        code = getattr(inspect.unwrap(self._function), "__code__", None)
        lines = traceback.extract_tb(error.__traceback__)
        own = [line for line in lines if code is not None and line.filename == code.co_filename]
        return f"{own[-1].filename}:{own[-1].lineno}" if own else None


class RowWriter:
    """Collects rows that a user's function returned, checks them, and gives them as columns of a layout.

    Every column of ``schema`` is checked; those that the layout does not carry are then left out. A column
    that a row lacks is null where it may be.
    """

    __slots__ = ("_fields", "_function", "_layout", "_strings", "_values", "count")

    def __init__(
        self, function: UserFunction, schema: Schema, layout: Layout | None, strings: StringPool
    ) -> None:
        self._function = function
        self._layout = layout or Layout(())
        self._strings = strings
        self._fields = [(field.name, field, converter(field), field.name in self._layout) for field in schema]
        self._values: dict[str, list[Any]] = {}
        self.count = 0
        self.clear()

    def add(self, row: Any, subject: object, time: int, order: int, sub: int, late: bool = False) -> None:
        """Takes one row with its system columns; the ``subject`` is named if it does not fit."""
        if not isinstance(row, dict):
            raise self._function.error(f"returned a row that is {_kind(row)}", subject, "a row is a dict")
        found = 0
        values = self._values
        for name, field, convert, carried in self._fields:
            if name in row:
                found += 1
                try:
                    value = convert(row[name])
                except ValueError as misfit:
                    what = f"returned {misfit} for column '{name}'"
                    raise self._function.error(what, subject, f"the column is {field.dtype}") from None
            elif field.nullable:
                value = None
            else:
                hint = f"columns are {', '.join(str(field) for _, field, _, _ in self._fields)}"
                raise self._function.error(f"returned a row without column '{name}'", subject, hint)
            if carried:
                values[name].append(value)
        if found != len(row):
            known = [name for name, _, _, _ in self._fields]
            unknown = next(name for name in row if name not in known)
            hint = f"columns are {', '.join(known)}"
            raise self._function.error(f"returned an unknown column '{unknown}'", subject, hint)
        for name, system in ((TIME, time), (ORDER, order), (SUB, sub), (LATE, late)):
            if name in values:
                values[name].append(system)
        self.count += 1

    def take(self) -> tuple[Columns, int]:
        """The rows collected so far, and how many; it is empty again afterwards."""
        columns: list[NDArray[Any]] = []
        for field in self._layout.fields:
            columns += to_columns(self._values[field.name], field, self._strings)
        count = self.count
        self.clear()
        return tuple(columns), count

    def cut(self, count: int) -> None:
        """Forgets all rows but the first ``count``, also one that did not fit."""
        for values in self._values.values():
            del values[count:]
        self.count = count

    def clear(self) -> None:
        """Forgets the rows collected so far."""
        self._values = {name: [] for name in self._layout.names}
        self.count = 0


def to_columns(values: list[Any], field: Field, strings: StringPool) -> list[NDArray[Any]]:
    """The arrays of one field with these values, which fit it: data, then, where it is nullable, the mask."""
    if field.dtype is DataType.STRING:
        data: NDArray[Any] = strings.codes(values)
    elif field.nullable:
        data = np.array([0 if value is None else value for value in values], field.dtype.numpy)
    else:
        data = np.array(values, field.dtype.numpy)
    if not field.nullable:
        return [data]
    return [data, np.array([value is None for value in values], np.bool_)]


def converter(field: Field) -> Callable[[Any], Any]:
    """A function that gives a value as the plain Python value that the field would hold.

    It raises ``ValueError``, saying what it got, where the value does not fit.
    """
    convert = _CONVERTERS[field.dtype]
    if not field.nullable:
        return convert

    def convert_nullable(value: Any) -> Any:
        return None if value is None else convert(value)

    return convert_nullable


def start_value(field: Field) -> Any:
    """What a state field holds before it was ever set."""
    if field.nullable:
        return None
    return _START[field.dtype]


def hash_key(key: tuple[Any, ...], dtypes: Sequence[DataType]) -> int:
    """Spark's ``xxhash64`` of one key, seed 42: what the ``$order`` of rows made from a key is."""
    seed = 42
    for value, dtype in zip(key, dtypes, strict=True):
        if value is not None:
            seed = xxhash.xxh64_intdigest(_key_bytes(value, dtype), seed)
    return seed - (1 << 64) if seed >= 1 << 63 else seed


def sub_of(sub: int, index: int) -> int:
    """The ``$sub`` of the row number ``index`` made from a row with ``sub``, wrapped to an int64."""
    return ((sub * SUB_ROWS + index + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _key_bytes(value: Any, dtype: DataType) -> bytes:
    if dtype is DataType.STRING:
        text: str = value
        return text.encode()
    if dtype.is_float:
        exact = NAN if math.isnan(value) else value + 0.0  # −0.0 + 0.0 is 0.0
        return struct.pack("<f" if dtype is DataType.FLOAT32 else "<d", exact)
    return struct.pack("<i" if dtype in (DataType.BOOL, DataType.INT32) else "<q", value)


def _canonical(value: float | None) -> float | None:
    if value is None:
        return None
    return value + 0.0 if value == value else NAN


def _boolean(value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ValueError(_kind(value))


def _integer(bits: int) -> Callable[[Any], int]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def convert(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ValueError(_kind(value))
        number = int(value)
        if low <= number <= high:
            return number
        raise ValueError(f"{value}, beyond {bits} bits,")

    return convert


def _float64(value: Any) -> float:
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(_kind(value))
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{value}, beyond 64 bits,") from None


def _float32(value: Any) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(_float64(value)))


def _string(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    raise ValueError(_kind(value))


_CONVERTERS: dict[DataType, Callable[[Any], Any]] = {
    DataType.BOOL: _boolean,
    DataType.INT32: _integer(32),
    DataType.INT64: _integer(64),
    DataType.FLOAT32: _float32,
    DataType.FLOAT64: _float64,
    DataType.TIMESTAMP: _integer(64),
    DataType.STRING: _string,
}

_START: dict[DataType, Any] = {
    DataType.BOOL: False,
    DataType.INT32: 0,
    DataType.INT64: 0,
    DataType.FLOAT32: 0.0,
    DataType.FLOAT64: 0.0,
    DataType.TIMESTAMP: 0,
    DataType.STRING: "",
}


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def _description(subject: object) -> str:
    if isinstance(subject, Group):
        window = f"[{subject.window_start}, {subject.window_end})"
        text = f"key {subject.key!r} in window {window}, left {subject.left!r}, right {subject.right!r}"
    elif isinstance(subject, str):
        text = subject
    else:
        text = f"event {subject!r}"
    return text if len(text) <= _LONGEST_SUBJECT else text[: _LONGEST_SUBJECT - 3] + "..."
