"""Which arrays the events of one stream are made of, in which order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.query.own_columns import LATE as LATE
from penstock.query.own_columns import ORDER as ORDER
from penstock.query.own_columns import SUB as SUB
from penstock.query.own_columns import SYSTEM_TYPES as SYSTEM_TYPES
from penstock.query.own_columns import TIME as TIME
from penstock.query.types import Field, Schema

#: The arrays of a block: for each field its data, then, where it is nullable, a mask (True: null).
Columns = tuple[NDArray[Any], ...]


class Layout:
    """Fields in order, and where each one's arrays stand in a block's tuple of columns."""

    __slots__ = ("_data", "_nulls", "dtypes", "fields", "row_bytes", "time", "visible")

    def __init__(self, fields: Iterable[Field], time: str | None = None) -> None:
        self.fields: tuple[Field, ...] = tuple(fields)
        #: The name of the column that holds the event time (``$time`` or a visible one); None if not carried.
        self.time = time
        self._data: dict[str, int] = {}
        self._nulls: dict[str, int] = {}
        dtypes: list[np.dtype[Any]] = []
        for field in self.fields:
            self._data[field.name] = len(dtypes)
            dtypes.append(field.dtype.numpy)
            if field.nullable:
                self._nulls[field.name] = len(dtypes)
                dtypes.append(np.dtype(np.bool_))
        self.dtypes: tuple[np.dtype[Any], ...] = tuple(dtypes)
        #: The user's columns among the fields.
        self.visible = Schema(field for field in self.fields if not field.name.startswith("$"))
        self.row_bytes: int = sum(dtype.itemsize for dtype in dtypes)

    def data(self, name: str) -> int:
        """The position of the column's data array."""
        return self._data[name]

    def nulls(self, name: str) -> int | None:
        """The position of the column's null mask, or None where it has no nulls."""
        return self._nulls.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._data

    def field(self, name: str) -> Field:
        return next(field for field in self.fields if field.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def schema(self) -> Schema:
        """All fields, Penstock's own included: what kernels type expressions against."""
        return Schema(self.fields)

    def allocate(self, capacity: int) -> Columns:
        """Fresh columns outside of any chunk: for tests, emissions and conversions."""
        return tuple(np.zeros(capacity, dtype) for dtype in self.dtypes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and (self.fields, self.time) == (other.fields, other.time)

    def __hash__(self) -> int:
        return hash((self.fields, self.time))

    def __repr__(self) -> str:
        return f"Layout({', '.join(str(field) for field in self.fields)})"
