"""Key columns as int64 words: equal keys have equal words, so tables and kernels compare integers only.

One word per key column: integers, timestamps, booleans and string codes as they are; floats as the bits of
the float64, with -0.0 as 0.0 and one NaN for all. Where a key column may be null, one more word, the last,
holds a bit per column, and the data word of a null is 0. Without key columns there is one word, 0:
everything is one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import part
from penstock.memory.layout import Columns, Layout
from penstock.query.types import DataType, Field

Words = NDArray[np.int64]  # one row of words per key: shape (keys, width)

#: Functions that the text of :meth:`KeyWords.lines` calls: a kernel's source needs this import.
IMPORTS = "from penstock.state.keys import float_word"


class KeyWords:
    """Turns key columns into words and back.

    >>> keys = KeyWords([Field("lane", DataType.INT32), Field("town", DataType.STRING, nullable=True)])
    >>> keys.width
    3
    """

    def __init__(self, fields: Iterable[Field]) -> None:
        self.fields: tuple[Field, ...] = tuple(fields)
        self.has_nulls = any(field.nullable for field in self.fields)
        self.width: int = max(1, len(self.fields) + self.has_nulls)

    @classmethod
    def of(cls, layout: Layout, names: Iterable[str]) -> KeyWords:
        """The words of these columns of a layout."""
        return cls(layout.field(name) for name in names)

    def encode(
        self,
        layout: Layout,
        columns: Columns,
        start: int,
        stop: int,
        names: Sequence[str] | None = None,
        rows: NDArray[np.intp] | None = None,
    ) -> Words:
        """The words of rows [start, stop) of columns in ``layout``; of some ``rows`` among them, counted
        from ``start``.

        ``names``: what the key columns are called there, if not like the fields. A column that is nullable
        there must be so in ``fields``; the reverse is fine.
        """
        count = stop - start if rows is None else len(rows)
        words = np.zeros((count, self.width), np.int64)
        for index, field in enumerate(self.fields):
            name = field.name if names is None else names[index]
            data = _taken(columns[layout.data(name)], start, stop, rows)
            words[:, index] = _float_words(data) if field.dtype.is_float else data
            nulls = layout.nulls(name)
            if nulls is not None:
                mask = _taken(columns[nulls], start, stop, rows)
                words[mask, index] = 0
                words[:, -1] |= mask.astype(np.int64) << index
        return words

    def decode(self, words: Words) -> Columns:
        """The columns that these words came from: per field its data and, where it is nullable, its mask."""
        columns: list[NDArray[Any]] = []
        for index, field in enumerate(self.fields):
            word = np.ascontiguousarray(words[:, index])
            if field.dtype.is_float:
                columns.append(word.view(np.float64).astype(field.dtype.numpy))
            else:
                columns.append(word.astype(field.dtype.numpy))
            if field.nullable:
                columns.append((words[:, -1] >> index) & 1 != 0)
        return tuple(columns)

    def null_rows(self, words: Words) -> NDArray[np.bool_]:
        """Which keys have a null in them: those that joins never match."""
        return words[:, -1] != 0 if self.has_nulls else np.zeros(len(words), np.bool_)

    def lines(
        self, loaded: Sequence[tuple[str, str | None]], prefix: str = "word"
    ) -> tuple[list[str], list[str]]:
        """Statements that compute the words of one event in a kernel, and the names of the words.

        ``loaded`` has, per key field, the kernel's names of its value and of its null flag (None: never
        null), as
        ``KernelBuilder.load`` gives them. The kernel's source needs ``IMPORTS``.
        """
        lines: list[str] = []
        names = [f"{prefix}{index}" for index in range(self.width)]
        bits: list[str] = []
        for index, (field, (value, null)) in enumerate(zip(self.fields, loaded, strict=True)):
            word = f"float_word({value})" if field.dtype.is_float else f"np.int64({value})"
            if null is None:
                lines.append(f"{names[index]} = {word}")
            else:
                lines.append(f"{names[index]} = np.int64(0) if {null} else {word}")
                bits.append(f"(np.int64({1 << index}) if {null} else np.int64(0))")
        if self.has_nulls:
            lines.append(f"{names[-1]} = {' | '.join(bits) or 'np.int64(0)'}")
        elif not self.fields:
            lines.append(f"{names[0]} = np.int64(0)")
        return lines, names


@part(forceinline=True)
def float_word(value: float) -> Any:
    """The bits of a float (32 or 64) as a word: equal words for -0.0 and 0.0, and for all NaNs."""
    wide = np.float64(value)
    if wide != wide:
        return np.int64(0x7FF8000000000000)
    return np.float64(wide + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0


def word_of(value: object, dtype: DataType) -> int:
    """The word of one plain value that is not null; a string comes as its code."""
    if dtype.is_float:
        return int(_float_words(np.array([value], np.float64))[0])
    return int(value)  # type: ignore[call-overload, no-any-return]


def _float_words(data: NDArray[Any]) -> NDArray[np.int64]:
    wide = data.astype(np.float64) + 0.0
    wide[np.isnan(wide)] = np.nan
    return wide.view(np.int64)


def _taken(column: NDArray[Any], start: int, stop: int, rows: NDArray[np.intp] | None) -> NDArray[Any]:
    part = column[start:stop]
    return part if rows is None else part[rows]
