"""The open sessions of all keys: a list per key, in flat arrays that kernels work on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed
from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import Columns
from penstock.state.keys import Words
from penstock.state.table import TABLE_TYPE, KeyTable, TableArrays, remove

Ints = NDArray[np.int64]

SIZE, FREE, ENDS, MERGED = 0, 1, 2, 3  # places in ``Sessions.counts``
_SMALLEST = 64

_INTS, _BOOLS = types.Array(types.int64, 1, "C"), types.Array(types.boolean, 1, "C")
#: The Numba type of ``Sessions.arrays``.
SESSIONS_TYPE = types.Tuple((*(_INTS,) * 6, _BOOLS, _INTS, _INTS))  # type: ignore[no-untyped-call]


class Sessions:
    """The open sessions of all keys, numbered; numbers of closed ones are used again.

    ``first`` and ``last``: the times of a session's outermost events, ``following``: the next session of the
    key, ``owner``: the key's entry, ``into``: itself, or the session it was merged into, ``is_open``;
    ``heads``: the first session per key entry. ``counts``: numbers ever used, free numbers, earliest end,
    sessions merged since the last look.
    """

    def __init__(self, width: int) -> None:
        self.keys = KeyTable(width)
        self.counts = np.zeros(4, np.int64)
        self.reset()

    def reset(self) -> None:
        """Forgets all sessions and keys."""
        self.keys.clear()
        self.heads = np.zeros(self.keys.capacity, np.int64)
        self.first, self.last, self.following, self.owner, self.free = np.zeros((5, _SMALLEST), np.int64)
        self.into = np.arange(_SMALLEST)
        self.is_open = np.zeros(_SMALLEST, np.bool_)
        self.counts[:] = (0, 0, END_OF_TIME, 0)

    @property
    def arrays(self) -> Columns:
        """What kernels get, in this order."""
        return (
            self.first,
            self.last,
            self.following,
            self.owner,
            self.into,
            self.free,
            self.is_open,
            self.heads,
            self.counts,
        )

    @property
    def capacity(self) -> int:
        return len(self.first)

    @property
    def earliest_end(self) -> int:
        """No session ends before; the exact end may be later, because sessions grow."""
        return int(self.counts[ENDS])

    def __len__(self) -> int:
        return int(np.count_nonzero(self.is_open))

    def grow(self) -> None:
        """Makes room for more sessions and more keys, whichever is short."""
        size = int(self.counts[SIZE])
        if len(self.keys) == self.keys.capacity:
            self.keys.grow()
            self.heads = _longer(self.heads, self.keys.capacity)
        if size - int(self.counts[FREE]) == self.capacity:
            self._resize(2 * self.capacity)

    def _resize(self, capacity: int) -> None:
        for name in ("first", "last", "following", "owner", "free", "is_open"):
            setattr(self, name, _longer(getattr(self, name), capacity))
        self.into = np.arange(capacity)

    def release_merged(self) -> Ints | None:
        """Frees the numbers of sessions that were merged into others; says what each number is called now."""
        if not self.counts[MERGED]:
            return None
        renamed = self.into
        while not np.array_equal(further := renamed[renamed], renamed):
            renamed = further
        self._release(np.flatnonzero(self.into != np.arange(self.capacity)))
        self.into = np.arange(self.capacity)
        self.counts[MERGED] = 0
        return renamed

    def ended(self, last_us: int) -> Ints:
        """The open sessions whose last event is not after ``last_us``."""
        size = int(self.counts[SIZE])
        return np.flatnonzero(self.is_open[:size] & (self.last[:size] <= last_us))

    def close(self, closing: Ints, gap_us: int) -> None:
        """Takes these sessions out, and keys without sessions too."""
        closing = np.ascontiguousarray(closing, np.int64)
        _unlink(self.keys.arrays, self.heads, self.following, self.owner, closing)
        self.is_open[closing] = False
        self._release(closing)
        if len(self.keys) == 0:
            self.reset()
        else:
            size = int(self.counts[SIZE])
            self.counts[ENDS] = int(self.last[:size][self.is_open[:size]].min()) + gap_us

    def restore(self, words: Words, first: Ints, last: Ints, gap_us: int) -> Ints | None:
        """Adds sessions of keys that have none yet, and says their numbers; None if a key was there."""
        if (self.keys.find(words) >= 0).any():
            return None
        entries = self.keys.insert(words)
        self.heads = _longer(self.heads, self.keys.capacity)
        self.heads[entries] = -1
        size = int(self.counts[SIZE])
        numbers = np.arange(size, size + len(entries))
        if size + len(entries) > self.capacity:
            self._resize(max(size + len(entries), 2 * self.capacity))
        self.first[numbers], self.last[numbers], self.owner[numbers] = first, last, entries
        self.is_open[numbers] = True
        _link(self.heads, self.following, entries, numbers)
        self.counts[SIZE] += len(entries)
        self.counts[ENDS] = min(int(self.counts[ENDS]), int(last.min(initial=END_OF_TIME - gap_us)) + gap_us)
        return numbers

    def _release(self, numbers: Ints) -> None:
        free = int(self.counts[FREE])
        self.free[free : free + len(numbers)] = numbers
        self.counts[FREE] += len(numbers)

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + sum(array.nbytes for array in self.arrays)


@fixed(types.void(TABLE_TYPE, *[_INTS] * 4))
def _unlink(table: TableArrays, heads: Ints, following: Ints, owner: Ints, closing: Ints) -> None:
    for session in closing:
        entry = owner[session]
        if heads[entry] == session:
            heads[entry] = following[session]
            if heads[entry] == -1:
                remove(table, entry)
        else:
            before = heads[entry]
            while following[before] != session:
                before = following[before]
            following[before] = following[session]


@fixed(types.void(*[_INTS] * 4))
def _link(heads: Ints, following: Ints, entries: Ints, sessions: Ints) -> None:
    for index in range(len(sessions)):
        following[sessions[index]] = heads[entries[index]]
        heads[entries[index]] = sessions[index]


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer
