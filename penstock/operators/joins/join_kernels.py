"""The kernels of joins: linking events into chains by key and bucket, and finding the pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed, part
from penstock.kernels.hashing import SEED, hash_i64
from penstock.state.keys import Words
from penstock.state.table import FULL, TABLE_TYPE, TableArrays, find, hash_word, insert
from penstock.state.table import hash_key as hash_words

# What a row has instead of the row behind it in its chain:
CHAIN_END = -1
DEAD = -2  # the row was evicted and waits for its place to be used again

#: In ``place`` of ``match``: begin with the first. As a bucket: before all others.
NOT_STARTED = -(1 << 63)

Ints = NDArray[np.int64]

_INTS, _WORDS, _INT = types.Array(types.int64, 1, "C"), types.Array(types.int64, 2, "C"), types.int64


@fixed(types.boolean(TABLE_TYPE, _WORDS, _INT, *[_INTS] * 4))
def link(
    table: TableArrays, keys: Words, first: int, heads: Ints, nexts: Ints, created: Ints, progress: Ints
) -> bool:
    """Puts row ``first + k`` at the head of the chain of key k; False when the table must grow first."""
    for index in range(progress[0], len(keys)):
        key = keys[index]
        in_use = table[4][2]
        entry = insert(table, key, hash_words(key))
        if entry == FULL:
            progress[0] = index
            return False
        if table[4][2] > in_use:
            heads[entry] = CHAIN_END
            created[progress[1]] = entry
            progress[1] += 1
        nexts[first + index] = heads[entry]
        heads[entry] = first + index
    progress[0] = len(keys)
    return True


@fixed(types.int64(_INTS, _INTS, _INTS))
def unlink(entries: Ints, heads: Ints, nexts: Ints) -> int:
    """Marks all rows of these chains dead; returns how many."""
    dead = 0
    for entry in entries:
        row = heads[entry]
        while row >= 0:
            following = nexts[row]
            nexts[row] = DEAD
            dead += 1
            row = following
        heads[entry] = CHAIN_END
    return dead


@fixed(types.void(*[_INTS] * 4))
def owners_of(entries: Ints, heads: Ints, nexts: Ints, owners: Ints) -> None:
    """The entry of every row that is in a chain."""
    for entry in entries:
        row = heads[entry]
        while row >= 0:
            owners[row] = entry
            row = nexts[row]


@fixed(types.int64(_WORDS, _INTS, _INT, TABLE_TYPE, *[_INTS] * 8, _INT))
def match(
    keys: Words,
    times: Ints,
    first: int,
    table: TableArrays,
    heads: Ints,
    nexts: Ints,
    other_times: Ints,
    reach: Ints,
    place: Ints,
    mine: Ints,
    theirs: Ints,
    windows: Ints,
    limit: int,
) -> int:
    """Pairs events with those of the other side, at most ``limit`` pairs; returns how many.

    ``reach``: window size and slide (size 0: an interval join), how far before and after an event its
    partners may be, the length of a bucket, the first and last bucket there.
    ``place`` is where to go on: event, bucket, row, window. All is done when the event is ``len(times)``.
    """
    size, slide, before, after, length = reach[0], reach[1], reach[2], reach[3], reach[4]
    first_bucket, last_bucket = reach[5], reach[6]
    event, bucket, row, window = place[0], place[1], place[2], place[3]
    count = 0
    key = np.empty(keys.shape[1], np.int64)
    last_word = keys.shape[1] - 1
    while event < len(times):
        time = times[event]
        newest = np.int64(0)  # the windows of this event: [oldest, newest]
        oldest = np.int64(0)
        start, stop = time - before, time + after
        if size > 0:
            newest = time // slide
            oldest = newest if size == slide else (time - size) // slide + 1
            start, stop = oldest * slide, newest * slide + size - 1
        if bucket == NOT_STARTED:
            bucket = max(start // length, first_bucket)
        until = min(stop // length, last_bucket)
        hashed = np.int64(0)
        for index in range(last_word):
            key[index] = keys[event, index]
            hashed = hash_word(hashed, key[index])
        while bucket <= until:
            if row == NOT_STARTED:
                key[last_word] = bucket
                entry = find(table, key, hash_word(hashed, bucket))
                row = heads[entry] if entry >= 0 else np.int64(CHAIN_END)
            while row >= 0:
                other = other_times[row]
                shared, last_shared = oldest, newest
                if size == 0:
                    if other < start or other > stop:
                        last_shared = shared - 1
                elif size != slide:
                    shared = max(oldest, (other - size) // slide + 1)
                    last_shared = min(newest, other // slide)
                shared = max(shared, window)
                while shared <= last_shared:
                    if count == limit:
                        place[0], place[1], place[2], place[3] = event, bucket, row, shared
                        return count
                    mine[count] = first + event
                    theirs[count] = row
                    windows[count] = shared
                    count += 1
                    shared += 1
                row = nexts[row]
                window = np.int64(NOT_STARTED)
            bucket += 1
            row = np.int64(NOT_STARTED)
        event += 1
        bucket = np.int64(NOT_STARTED)
    place[0], place[1], place[2], place[3] = event, NOT_STARTED, NOT_STARTED, NOT_STARTED
    return count


@fixed(types.void(*[_INTS] * 8, _INT, _INTS))
def order(
    left_time: Ints,
    left_order: Ints,
    left_sub: Ints,
    right_time: Ints,
    right_order: Ints,
    right_sub: Ints,
    left: Ints,
    right: Ints,
    count: int,
    result: Ints,
) -> None:
    """The ``$order`` of pairs: a hash of both events' places. Without ``$sub`` that array is empty."""
    for index in range(count):
        hashed = hash_place(left_time, left_order, left_sub, left[index], SEED)
        result[index] = np.int64(hash_place(right_time, right_order, right_sub, right[index], hashed))


@fixed(types.void(*[_INTS] * 4, _INT, _INTS))
def place(times: Ints, orders: Ints, subs: Ints, rows: Ints, count: int, result: Ints) -> None:
    """The ``$order`` of rows made from single events: a hash of each event's place."""
    for index in range(count):
        result[index] = np.int64(hash_place(times, orders, subs, rows[index], SEED))


@part(error_model="numpy")
def hash_place(times: Ints, orders: Ints, subs: Ints, row: int, seed: Any) -> Any:
    """xxhash64 of (event time, ``$order``, ``$sub``): no two events of a stream have the same three."""
    hashed = hash_i64(orders[row], hash_i64(times[row], seed))
    return hash_i64(subs[row] if len(subs) else np.int64(0), hashed)
