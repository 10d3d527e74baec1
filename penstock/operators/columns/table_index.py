"""From a key to its row in a static table: by subtraction where keys are dense integers, else by hash."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.compiled.cache import compile_kernel
from penstock.kernels.builder import HEADER, KernelBuilder
from penstock.query.errors import QueryError
from penstock.query.types import DataType

Words = NDArray[np.int64]  # a key column; equal words are equal keys
Rows = NDArray[np.uint32]  # row numbers; the number of rows itself means: none

# A dense range may have so many holes per key before hashing costs less memory.
_SPARSE = 8
_SMALL = 1 << 16  # entries that are nothing: 256 KB


@dataclass(frozen=True)
class DirectIndex:
    """``entries[key - base]`` is the row; everything outside shares the last entry, which says none."""

    base: int
    entries: Rows
    rows: int

    def write(self, builder: KernelBuilder, words: list[str]) -> str:
        """Appends the statements that find the row of a key; the temporary that holds it."""
        base = builder.constant(self.base, DataType.INT64)
        last = builder.constant(len(self.entries) - 1, DataType.INT64)
        entries = builder.table(builder.parameters.add_table(self.entries))
        place = builder.assign(f"uint64({words[0]} - {base})")  # below the base wraps to a huge number
        return builder.assign(f"{entries}[{place} if {place} < uint64({last}) else uint64({last})]")


@dataclass(frozen=True)
class HashIndex:
    """Open addressing with linear probing, at most half full; ``words`` has the keys row by row."""

    words: Words
    slots: Rows
    rows: int

    def write(self, builder: KernelBuilder, words: list[str]) -> str:
        """Appends the statements that find the row of a key; the temporary that holds it."""
        keys = builder.table(builder.parameters.add_table(self.words))
        slots = builder.table(builder.parameters.add_table(self.slots))
        rows = builder.constant(self.rows, DataType.INT64)
        hashed = "uint64(0)"
        for word in words:
            hashed = f"mix({hashed}, {word})"
        last = builder.assign(f"uint64({slots}.size - 1)")
        place = builder.assign(f"{hashed} & {last}")
        row = builder.assign(f"{slots}[{place}]")
        same = " and ".join(
            f"{keys}[uint64({row}) * uint64({len(words)}) + uint64({index})] == {word}"
            for index, word in enumerate(words)
        )
        builder.lines += [
            f"while {row} < {rows} and not ({same}):",
            f"    {place} = ({place} + uint64(1)) & {last}",
            f"    {row} = {slots}[{place}]",
        ]
        return row


def index_of(columns: list[Words], usable: NDArray[np.bool_]) -> DirectIndex | HashIndex:
    """An index over key columns, without rows that are not ``usable``. Refuses a key that occurs twice."""
    rows = len(usable)
    if len(columns) == 1 and usable.any():
        keys = columns[0][usable]
        base, size = int(keys.min()), int(keys.max()) - int(keys.min()) + 1
        if size <= max(_SMALL, _SPARSE * rows):
            return _direct(columns[0], usable, base, size)
    words = np.ascontiguousarray(np.stack(columns, axis=1)).reshape(-1)
    slots = np.full(1 << max(4, (2 * rows - 1).bit_length()), rows, np.uint32)
    insert = compile_kernel("index_rows", _INSERT, _INSERT_SIGNATURE)
    twice = insert(words, len(columns), usable, slots)
    if twice >= 0:
        raise _duplicate(twice, [int(column[twice]) for column in columns])
    return HashIndex(words, slots, rows)


def _direct(keys: Words, usable: NDArray[np.bool_], base: int, size: int) -> DirectIndex:
    rows = len(keys)
    entries = np.full(size + 1, rows, np.uint32)
    numbers = np.flatnonzero(usable).astype(np.uint32)
    places = keys[usable] - base
    entries[places] = numbers
    overwritten = np.flatnonzero(entries[places] != numbers)
    if overwritten.size:
        twice = int(numbers[overwritten[0]])
        raise _duplicate(twice, [int(keys[twice])])
    return DirectIndex(base, entries, rows)


def _duplicate(row: int, words: list[int]) -> QueryError:
    return QueryError(
        "the table has a key more than once",
        detail=f"row {row} (key {', '.join(map(str, words))}) has the key of another row",
        hint="a lookup gives one row per event: make the keys unique",
    )


_INSERT = (
    HEADER
    + """

def index_rows(words, width, usable, slots):
    rows = usable.size
    last = uint64(slots.size - 1)
    for row in range(rows):
        if not usable[row]:
            continue
        h = uint64(0)
        for index in range(width):
            h = mix(h, words[row * width + index])
        place = h & last
        while slots[place] < rows:
            other = int64(slots[place])
            same = True
            for index in range(width):
                same &= words[other * width + index] == words[row * width + index]
            if same:
                return row
            place = (place + uint64(1)) & last
        slots[place] = row
    return int64(-1)
"""
)
_INSERT_SIGNATURE = types.int64(
    types.Array(types.int64, 1, "C"),
    types.int64,
    types.Array(types.boolean, 1, "C"),
    types.Array(types.uint32, 1, "C"),
)
