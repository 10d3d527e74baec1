"""What a kernel is given besides columns: its constants and its tables, which are not part of its source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.kernels.makers import Maker
from penstock.memory.strings import StringPool, StringTable
from penstock.query.types import DataType

Table = NDArray[Any]
Arguments = tuple[NDArray[np.int64], NDArray[np.float64], tuple[Table, ...]]


class Parameters:
    """The constants and tables of one kernel, in the order in which its source names them.

    A kernel's last three parameters are ``ints, floats, tables``. Tables of functions of strings grow with
    the run's dictionary: ask ``arguments`` anew before every call; that is cheap while nothing grew.
    """

    def __init__(self, strings: StringPool) -> None:
        self._strings = strings
        self._ints: list[int] = []
        self._floats: list[float] = []
        self._tables: list[Table | StringTable | Callable[[], Table]] = [np.zeros(1, np.int64)]
        self._shared: dict[str, int] = {}
        self._makers: list[Maker] = []
        self._bytes: tuple[int, int] | None = None
        self._has_string_tables = False
        self._known_strings = -1
        self._arguments: Arguments | None = None

    def add_int(self, value: int) -> int:
        """Where in ``ints`` the constant stands. Equal constants are kept apart: a shape knows no values."""
        self._ints.append(value)
        return len(self._ints) - 1

    def add_float(self, value: float) -> int:
        """Where in ``floats`` the constant stands."""
        self._floats.append(value)
        return len(self._floats) - 1

    def add_table(self, table: Table) -> int:
        """Where in ``tables`` a table of constant values stands."""
        self._tables.append(np.ascontiguousarray(table))
        return len(self._tables) - 1

    def set_table(self, place: int, table: Table) -> None:
        """Another table of the same type in that place."""
        self._tables[place] = np.ascontiguousarray(table)
        self._arguments = None

    def add_string_table(
        self, function: Callable[[str], Any], dtype: DataType, *, shared_as: str | None = None
    ) -> int:
        """Where the table of a function of strings stands; one without constants is kept once, by name."""
        if shared_as is not None and shared_as in self._shared:
            return self._shared[shared_as]
        self._has_string_tables = True
        self._tables.append(StringTable(self._strings, function, dtype.numpy))
        place = len(self._tables) - 1
        if shared_as is not None:
            self._shared[shared_as] = place
        return place

    def add_maker(self, function: Callable[..., str], words: int) -> int:
        """Where in ``ints`` the address stands that makes texts of so many words."""
        self._makers.append(Maker(self._strings, function, words))
        return self.add_int(self._makers[-1].address)

    def add_byte_tables(self) -> tuple[int, int]:
        """Where the bytes of all strings and their offsets stand."""
        if self._bytes is None:
            self._has_string_tables = True
            self._tables += [lambda: self._strings.byte_tables()[0], lambda: self._strings.byte_tables()[1]]
            self._bytes = (len(self._tables) - 2, len(self._tables) - 1)
        return self._bytes

    def arguments(self) -> Arguments:
        """``(ints, floats, tables)``, valid for every string known at the time of the call."""
        for maker in self._makers:
            maker.check()
        if self._arguments is None or (self._has_string_tables and len(self._strings) != self._known_strings):
            self._refresh()
        return self._arguments  # type: ignore[return-value]

    @property
    def types(self) -> tuple[Any, Any, Any]:
        """The Numba types of ``arguments()``."""
        if self._arguments is None:
            self._refresh()
        assert self._arguments is not None
        return (
            types.Array(types.int64, 1, "C"),
            types.Array(types.float64, 1, "C"),
            column_types(tuple(table.dtype for table in self._arguments[2])),
        )

    def _refresh(self) -> None:
        while True:
            known = len(self._strings)
            tables = tuple(_current(table) for table in self._tables)
            if not self._has_string_tables or len(self._strings) == known:  # ``lower`` may add strings
                break
        ints = np.array(self._ints or [0], np.int64)
        floats = np.array(self._floats or [0.0], np.float64)
        self._arguments = (ints, floats, tables)
        self._known_strings = known


def array_type(dtype: np.dtype[Any]) -> Any:
    """The Numba type of a column of ``dtype``."""
    return types.Array(_SCALARS[dtype], 1, "C")


def column_types(dtypes: tuple[np.dtype[Any], ...]) -> Any:
    """The Numba type of a block's columns: ``column_types(layout.dtypes)``."""
    return types.Tuple(tuple(array_type(dtype) for dtype in dtypes))  # type: ignore[no-untyped-call]


_SCALARS = {
    np.dtype(np.bool_): types.boolean,
    np.dtype(np.uint8): types.uint8,
    np.dtype(np.uint32): types.uint32,
    np.dtype(np.int32): types.int32,
    np.dtype(np.int64): types.int64,
    np.dtype(np.uint64): types.uint64,
    np.dtype(np.float32): types.float32,
    np.dtype(np.float64): types.float64,
}


def _current(table: Table | StringTable | Callable[[], Table]) -> Table:
    if isinstance(table, np.ndarray):
        return table
    return table.array() if isinstance(table, StringTable) else table()
