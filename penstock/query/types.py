"""The types that a column can have, and schemas: ordered, named, typed columns."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from penstock.query.errors import QueryError


class DataType(Enum):
    """A column's type. All are fixed-width in memory: a timestamp is microseconds since 1970 (UTC)
    in an int64, a string is an int32 code of the run's dictionary."""

    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    TIMESTAMP = "timestamp"
    STRING = "string"

    @property
    def numpy(self) -> np.dtype[Any]:
        return _NUMPY[self]

    @property
    def is_integer(self) -> bool:
        return self in (DataType.INT32, DataType.INT64)

    @property
    def is_float(self) -> bool:
        return self in (DataType.FLOAT32, DataType.FLOAT64)

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float

    def __repr__(self) -> str:
        return self.value

    __str__ = __repr__


_NUMPY: dict[DataType, np.dtype[Any]] = {
    DataType.BOOL: np.dtype(np.bool_),
    DataType.INT32: np.dtype(np.int32),
    DataType.INT64: np.dtype(np.int64),
    DataType.FLOAT32: np.dtype(np.float32),
    DataType.FLOAT64: np.dtype(np.float64),
    DataType.TIMESTAMP: np.dtype(np.int64),
    DataType.STRING: np.dtype(np.int32),
}


@dataclass(frozen=True)
class Field:
    """One column: its name, its type, and whether it may hold nulls."""

    name: str
    dtype: DataType
    nullable: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{'?' if self.nullable else ''}"


class Schema:
    """Ordered, named, typed columns. A trailing ``?`` marks a column that may hold nulls.

    >>> Schema(ts="timestamp", speed="float64?")
    Schema(ts: timestamp, speed: float64?)
    """

    __slots__ = ("_by_name", "fields")

    def __init__(
        self, fields: Iterable[Field] | Mapping[str, str | DataType] = (), /, **columns: str | DataType
    ) -> None:
        listed = list(_parsed(fields) if isinstance(fields, Mapping) else fields)
        listed += _parsed(columns)
        self.fields: tuple[Field, ...] = tuple(listed)
        self._by_name: dict[str, Field] = {}
        for field in listed:
            if not isinstance(field, Field):
                raise QueryError(
                    "not a column", detail=f"got {field!r}", hint="write Schema(speed='float64', ...)"
                )
            if not _is_text(field.name):
                raise QueryError(
                    "a column's name must be text", detail=f"got {field.name!r}", hint="name it 'x'"
                )
            if field.name in self._by_name:
                raise QueryError(f"duplicate column '{field.name}'", hint="give one of them another name")
            self._by_name[field.name] = field

    @classmethod
    def of(cls, columns: Schema | Mapping[str, str | DataType]) -> Schema:
        """A schema from a schema or from ``{name: type}``."""
        if isinstance(columns, Schema):
            return columns
        if not isinstance(columns, Mapping):
            raise QueryError(
                "not a schema",
                detail=f"got {columns!r}",
                hint="write e.g. {'lane': 'int32', 'speed': 'float64?'}",
            )
        return cls(columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def __getitem__(self, name: str) -> Field:
        try:
            return self._by_name[name]
        except KeyError:
            raise unknown_column(name, self.names) from None

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.fields)

    def __repr__(self) -> str:
        return f"Schema({', '.join(str(field) for field in self.fields)})"


def _is_text(name: object) -> bool:
    return isinstance(name, str) and bool(name)


def _parsed(columns: Mapping[str, str | DataType]) -> list[Field]:
    return [Field(name, *parse_type(text, name)) for name, text in columns.items()]


#: What others call our types.
_SYNONYMS = {
    **dict.fromkeys(("str", "text", "varchar", "object", "utf8"), "string"),
    **dict.fromkeys(("int", "integer", "long", "bigint"), "int64"),
    **dict.fromkeys(("float", "double"), "float64"),
    **dict.fromkeys(("datetime", "date", "datetime64", "time"), "timestamp"),
    "boolean": "bool",
}


def parse_type(text: str | DataType, name: str | None = None) -> tuple[DataType, bool]:
    """``'float64?'`` → (FLOAT64, nullable)."""
    if isinstance(text, DataType):
        return text, False
    try:
        return DataType(text.removesuffix("?")), text.endswith("?")
    except (ValueError, AttributeError):
        fits = ", ".join(dtype.value for dtype in DataType)
        meant = _SYNONYMS.get(getattr(text, "__name__", str(text).lower().removesuffix("?")))
        raise QueryError(
            f"unknown type {text!r}",
            detail=None if name is None else f"for column '{name}'",
            hint=(f"write '{meant}'; " if meant else "") + f"types are {fits}; add '?' for nulls",
        ) from None


def unknown_column(name: str, known: Iterable[str]) -> QueryError:
    """The error for a column that is not there, with the closest one that is."""
    names = [n for n in known if not n.startswith("$")]
    close = difflib.get_close_matches(name, names, n=1)
    meant = f"did you mean '{close[0]}'? " if close else ""
    return QueryError(f"unknown column '{name}'", hint=f"{meant}columns here: {', '.join(names)}")
