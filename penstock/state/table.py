"""A hash table from keys of int64 words to dense entry numbers, whose parts are plain arrays that kernels
work on.

Whoever keeps something per key keeps it in arrays indexed by the entry number. Entries of removed keys are
used again, so state stays as large as the largest number of keys held at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed, part
from penstock.state.keys import Words

Word = Any  # in kernels, an int64
Key = Any  # in kernels, a tuple of int64 or a row of an int64 matrix

#: What kernels get: slots, words, live, free, counts (see ``KeyTable``).
TableArrays = tuple[
    NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int32], NDArray[np.int64]
]

#: The Numba type of ``TableArrays``.
TABLE_TYPE = types.Tuple(  # type: ignore[no-untyped-call]
    (
        types.Array(types.int32, 1, "C"),
        types.Array(types.int64, 2, "C"),
        types.Array(types.boolean, 1, "C"),
        types.Array(types.int32, 1, "C"),
        types.Array(types.int64, 1, "C"),
    )
)

#: What ``insert`` returns when there is no room: the kernel stops, Python grows the table and resumes.
FULL = -1
ABSENT = -1

_SIZE, _FREE, _LIVE, _SHIFT = 0, 1, 2, 3  # places in ``counts``
_MULTIPLIER = np.int64(-7046029254386353131)  # 2**64 / golden ratio: Fibonacci hashing
_SMALLEST = 16


class KeyTable:
    """Keys of ``width`` words → entries 0, 1, 2, ...

    Arrays, all flat and free of Python objects:
    ``slots``: a power of two many, at least twice the capacity; the entry that hashes there, or -1 (linear
    probing);
    ``words``: the key of each entry, one row each; ``live``: whether the entry is in use; ``free``: entries
    to use again;
    ``counts``: entries ever used (all numbers are below it), length of ``free``, entries in use, and the
    hash shift.

    In a kernel: ``entry = find(table, key, hash_key(key))`` or ``insert``, where ``table`` is ``arrays`` and
    ``key`` a tuple of ``width`` int64 (or a row of an int64 matrix). ``insert`` returns ``FULL`` when the
    table must grow; whether the entry is new shows in ``table[4][2]`` (entries in use), which then rose by
    one.
    """

    __slots__ = ("_capacity", "_counts", "_free", "_live", "_slots", "_words", "width")

    def __init__(self, width: int, capacity: int = _SMALLEST) -> None:
        self.width = width
        self._capacity = 0
        self._slots = np.zeros(0, np.int32)
        self._words = np.zeros((0, width), np.int64)
        self._live = np.zeros(0, np.bool_)
        self._free = np.zeros(0, np.int32)
        self._counts = np.zeros(4, np.int64)
        self.grow(max(capacity, _SMALLEST))

    @property
    def arrays(self) -> TableArrays:
        """What kernels get. Fetch anew after ``grow`` and ``clear``."""
        return (self._slots, self._words, self._live, self._free, self._counts)

    @property
    def capacity(self) -> int:
        """Entries there is room for; arrays indexed by entry must be at least as long."""
        return self._capacity

    @property
    def size(self) -> int:
        """One more than the largest entry ever used: every entry in use is below it."""
        return int(self._counts[_SIZE])

    def __len__(self) -> int:
        return int(self._counts[_LIVE])

    @property
    def words(self) -> Words:
        """The keys by entry, as a view of all entries below ``size``."""
        return self._words[: self.size]

    @property
    def live(self) -> NDArray[np.bool_]:
        """Which entries below ``size`` are in use, as a view."""
        return self._live[: self.size]

    @property
    def entries(self) -> NDArray[np.intp]:
        """All entries in use, ascending."""
        return np.flatnonzero(self.live)

    def find(self, keys: Words) -> NDArray[np.int64]:
        """The entry of each key, or ``ABSENT``."""
        entries = np.empty(len(keys), np.int64)
        _find_rows(self.arrays, np.ascontiguousarray(keys, np.int64), entries)
        return entries

    def insert(self, keys: Words) -> NDArray[np.int64]:
        """The entry of each key; unknown keys are added. ``capacity`` says how long other arrays must be."""
        entries = np.empty(len(keys), np.int64)
        keys = np.ascontiguousarray(keys, np.int64)
        done = 0
        while True:
            done = _insert_rows(self.arrays, keys, entries, done)
            if done == len(keys):
                return entries
            self.grow()

    def remove(self, entries: NDArray[Any]) -> None:
        """Takes entries in use out; their numbers will be given to new keys."""
        removed = np.ascontiguousarray(entries, np.int64)
        if 8 * len(removed) >= self._capacity:  # so many that to begin anew costs less than to close the gaps
            _drop_entries(self.arrays, removed)
            _rebuild(self.arrays)
        else:
            _remove_entries(self.arrays, removed)

    def grow(self, capacity: int | None = None) -> None:
        """Makes room for ``capacity`` entries, by default twice as many. Entries keep their numbers."""
        capacity = capacity or 2 * self._capacity
        self._words = _lengthened(self._words, capacity)
        self._live = _lengthened(self._live, capacity)
        self._free = _lengthened(self._free, capacity)
        # Small tables are sparse, so that nearly every key sits in the first slot that is looked at.
        slots = 1 << ((8 if capacity <= 1 << 12 else 2) * capacity - 1).bit_length()
        self._slots = np.empty(slots, np.int32)
        self._counts[_SHIFT] = 64 - (slots.bit_length() - 1)
        self._capacity = capacity
        _rebuild(self.arrays)

    def clear(self) -> None:
        """Takes everything out. Gives memory back where most of the room was not needed this time."""
        shrinks = 4 * self.size < self._capacity
        self._counts[:_SHIFT] = 0
        if shrinks:
            self._capacity = 0
            self._words, self._live, self._free = self._words[:0], self._live[:0], self._free[:0]
            self.grow(_SMALLEST)
        else:
            self._live[:] = False
            self._slots[:] = -1

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes + self._words.nbytes + self._live.nbytes + self._free.nbytes


def warm_up() -> None:
    """Compiles, or loads, what the first uses of a table in a process would else wait for."""
    table = KeyTable(1)
    key = np.zeros((1, 1), np.int64)
    table.insert(key)
    table.remove(table.find(key))


# -- for kernels ---------------------------------------------------------------------------------------------


@part(forceinline=True)
def hash_word(hashed: Word, word: Word) -> Word:
    """One more word into a hash that starts as 0."""
    mixed = (hashed ^ word) * _MULTIPLIER
    # Shifted without a sign: else the upper bits, which choose the slot, would leave half of them unused.
    return mixed ^ np.int64(np.uint64(mixed) >> np.uint64(32))


@part(forceinline=True)
def hash_key(key: Key) -> Word:
    """The hash of a whole key: ``hash_word`` over its words in order."""
    hashed = np.int64(0)
    for index in range(len(key)):
        hashed = hash_word(hashed, key[index])
    return hashed


@part(forceinline=True)
def first_slot(shift: Word, hashed: Word) -> Any:
    """Where the search for a key begins; ``shift`` is ``counts[3]``."""
    return np.uint64(hashed) >> np.uint64(shift)


@part(forceinline=True)
def same_key(words: NDArray[np.int64], entry: Word, key: Key) -> bool:
    same = True
    for index in range(len(key)):
        same &= words[np.uint64(entry), index] == key[index]
    return same


@part()
def find(table: TableArrays, key: Key, hashed: Word) -> Word:
    """The entry of the key, or ``ABSENT``."""
    slots, words, _, _, counts = table
    mask = np.uint64(len(slots) - 1)
    slot = first_slot(counts[_SHIFT], hashed)
    while True:
        entry = np.int64(slots[slot])
        if entry < 0 or same_key(words, entry, key):
            return entry
        slot = (slot + np.uint64(1)) & mask


@part()
def insert(table: TableArrays, key: Key, hashed: Word) -> Word:
    """The entry of the key, which is added if unknown; ``FULL`` if there is no room for it."""
    slots, words, live, free, counts = table
    mask = np.uint64(len(slots) - 1)
    slot = first_slot(counts[_SHIFT], hashed)
    while True:
        entry = np.int64(slots[slot])
        if entry < 0:
            break
        if same_key(words, entry, key):
            return entry
        slot = (slot + np.uint64(1)) & mask
    if counts[_FREE] > 0:
        counts[_FREE] -= 1
        entry = np.int64(free[counts[_FREE]])
    elif counts[_SIZE] < len(live):
        entry = counts[_SIZE]
        counts[_SIZE] += 1
    else:
        return np.int64(FULL)
    for index in range(len(key)):
        words[entry, index] = key[index]
    live[entry] = True
    counts[_LIVE] += 1
    slots[slot] = entry
    return entry


@part()
def remove(table: TableArrays, entry: Word) -> None:
    """Takes an entry in use out. Others keep their numbers."""
    slots, words, live, free, counts = table
    mask = np.uint64(len(slots) - 1)
    slot = first_slot(counts[_SHIFT], hash_key(words[entry]))
    while slots[slot] != entry:
        slot = (slot + np.uint64(1)) & mask
    # Close the gap: move up whatever would no longer be found across it.
    following = slot
    while True:
        following = (following + np.uint64(1)) & mask
        other = np.int64(slots[following])
        if other < 0:
            break
        home = first_slot(counts[_SHIFT], hash_key(words[other]))
        if ((following - home) & mask) >= ((following - slot) & mask):
            slots[slot] = other
            slot = following
    slots[slot] = -1
    live[entry] = False
    counts[_LIVE] -= 1
    free[counts[_FREE]] = entry
    counts[_FREE] += 1


# -- many keys at once -------------------------------------------------------------------------------------

_ROWS, _ENTRIES = types.Array(types.int64, 2, "C"), types.Array(types.int64, 1, "C")


@fixed(types.void(TABLE_TYPE, _ROWS, _ENTRIES))
def _find_rows(table: TableArrays, keys: Words, entries: NDArray[np.int64]) -> None:
    for row in range(len(keys)):
        entries[row] = find(table, keys[row], hash_key(keys[row]))


@fixed(types.int64(TABLE_TYPE, _ROWS, _ENTRIES, types.int64))
def _insert_rows(table: TableArrays, keys: Words, entries: NDArray[np.int64], done: int) -> int:
    for row in range(done, len(keys)):
        entry = insert(table, keys[row], hash_key(keys[row]))
        if entry == FULL:
            return row
        entries[row] = entry
    return len(keys)


@fixed(types.void(TABLE_TYPE, _ENTRIES))
def _remove_entries(table: TableArrays, entries: NDArray[np.int64]) -> None:
    for entry in entries:
        remove(table, entry)


@fixed(types.void(TABLE_TYPE, _ENTRIES))
def _drop_entries(table: TableArrays, entries: NDArray[np.int64]) -> None:
    """Takes entries out but for their slots. Those that come first will be used again first."""
    _, _, live, free, counts = table
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        live[entry] = False
        free[counts[_FREE]] = entry
        counts[_FREE] += 1
    counts[_LIVE] -= len(entries)


@fixed(types.void(TABLE_TYPE))
def _rebuild(table: TableArrays) -> None:
    slots, words, live, _, counts = table
    mask = np.uint64(len(slots) - 1)
    slots[:] = -1
    for entry in range(counts[_SIZE]):
        if live[entry]:
            slot = first_slot(counts[_SHIFT], hash_key(words[entry]))
            while slots[slot] >= 0:
                slot = (slot + np.uint64(1)) & mask
            slots[slot] = entry


def _lengthened(array: NDArray[Any], length: int) -> NDArray[Any]:
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
