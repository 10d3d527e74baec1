"""Events' columns by name: as operators keep them, and as predicates and detectors read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.memory.layout import LATE, ORDER, SUB, Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.types import DataType, Field

#: The mask of a column that may be null stands beside it, under its name and this.
NULL = "$null"

Named = dict[str, NDArray[Any]]

_NOT_KEPT = (LATE, ORDER, SUB)


def kept_fields(layout: Layout) -> list[Field]:
    """What is kept of an event once it is in order."""
    return [field for field in layout.fields if field.name not in _NOT_KEPT]


def named(layout: Layout, columns: Columns, rows: Any = slice(None), skipped: tuple[str, ...] = ()) -> Named:
    """The rows of columns by name, masks of nulls beside them."""
    found: Named = {}
    for field in layout.fields:
        if field.name in skipped:
            continue
        found[field.name] = columns[layout.data(field.name)][rows]
        nulls = layout.nulls(field.name)
        if nulls is not None:
            found[field.name + NULL] = columns[nulls][rows]
    return found


def kept(layout: Layout, columns: Columns, rows: Any) -> Named:
    """What is kept of these events."""
    return named(layout, columns, rows, _NOT_KEPT)


def in_layout(layout: Layout, values: Mapping[str, NDArray[Any]]) -> Columns:
    """Values by name as the columns of a layout."""
    columns: list[NDArray[Any]] = []
    for field in layout.fields:
        columns.append(np.ascontiguousarray(values[field.name], field.dtype.numpy))
        if layout.nulls(field.name) is not None:
            columns.append(np.ascontiguousarray(values[field.name + NULL], np.bool_))
    return tuple(columns)


class EventColumns(Mapping[str, NDArray[Any]]):
    """Columns as users' code reads them: numbers as they are, texts as Python strings, made when asked for.

    Nulls are zeros, or None among texts; ``name$null`` is the mask of a column that may have some.
    """

    def __init__(
        self, columns: Mapping[str, NDArray[Any]], texts: frozenset[str], strings: StringPool
    ) -> None:
        self._columns, self._texts, self._strings = columns, texts, strings
        self._decoded: Named = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._texts:
            return self._columns[name]
        if name not in self._decoded:
            codes, nulls = self._columns[name], self._columns.get(name + NULL)
            self._decoded[name] = self._strings.decode(codes, nulls).to_numpy(zero_copy_only=False)
        return self._decoded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def text_names(layout: Layout) -> frozenset[str]:
    return frozenset(field.name for field in layout.fields if field.dtype is DataType.STRING)
