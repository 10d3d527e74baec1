"""The kernel that opens and closes selections by pairs of events: a chain of open selections per key.

An entry is one open selection; entries lie in the order of opening, closed ones among them until the next
``rehash``. Time per event is constant on average, however many selections are open.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed, part

Array = NDArray[Any]

#: What an event does, as bits of its flags. Conjunctions have two sides: each closes the other's.
OPENS_LEFT, OPENS_RIGHT, CLOSES_LEFT, CLOSES_RIGHT = 1, 2, 4, 8

#: ``within_us`` of a pattern without a limit of time.
UNLIMITED = -1

_ENTRIES = "int64[::1], int64[::1], int64[::1], int64[::1], int8[::1], int64[::1]"
_TABLE = "int64[::1], int64[:, ::1]"
_MIX = np.uint64(0x9E3779B97F4A7C15)


@part()
def _slot(key: int, mask: int) -> Any:
    return np.int64((np.uint64(key) * _MIX) >> np.uint64(20)) & mask


@fixed(f"void(int64, {_ENTRIES}, {_TABLE})")
def rehash(
    count: int,
    numbers: Array,
    start_times: Array,
    keys: Array,
    following: Array,
    sides: Array,
    places: Array,
    slot_keys: Array,
    heads: Array,
) -> None:
    """Puts ``count`` entries, all of them open, into an empty table."""
    mask = len(slot_keys) - 1
    heads[:] = -2  # never used
    for entry in range(count):
        slot = _slot(keys[entry], mask)
        while heads[slot, 0] != -2 and slot_keys[slot] != keys[entry]:
            slot = (slot + 1) & mask
        if heads[slot, 0] == -2:
            slot_keys[slot] = keys[entry]
            heads[slot, 0] = heads[slot, 1] = -1
        following[entry] = heads[slot, sides[entry]]
        heads[slot, sides[entry]] = entry


@fixed(
    "UniTuple(int64, 4)(uint8[::1], int64[::1], int64[::1], int64, int64, boolean, int64, int64, int64,"
    f" {_ENTRIES}, {_TABLE}, int64[::1], int64[::1], int64[::1], int64[::1])"
)
def cut_pairs(
    flags: Array,
    event_keys: Array,
    times: Array,
    first: int,
    within_us: int,
    includes_close: bool,
    number: int,
    count: int,
    oldest: int,
    numbers: Array,
    start_times: Array,
    keys: Array,
    following: Array,
    sides: Array,
    places: Array,
    slot_keys: Array,
    heads: Array,
    starts: Array,
    closed: Array,
    stops: Array,
    closers: Array,
) -> tuple[int, int, int, int]:
    """P_c before P_s, event by event; returns entries, the oldest open one, and how many opened and closed.

    A closed entry has ``places`` −1. There is room for one more entry and one more key per event.
    """
    mask = len(slot_keys) - 1
    opened = 0
    done = 0
    for k in range(len(flags)):
        if within_us >= 0:
            limit = times[k] - within_us
            while oldest < count and (places[oldest] < 0 or start_times[oldest] < limit):
                if places[oldest] >= 0:
                    places[oldest] = -1
                    closed[done] = numbers[oldest]
                    stops[done] = first + k
                    closers[done] = first + k
                    done += 1
                oldest += 1
        flag = flags[k]
        if flag == 0:
            continue
        key = event_keys[k]
        slot = _slot(key, mask)
        while heads[slot, 0] != -2 and slot_keys[slot] != key:
            slot = (slot + 1) & mask
        for side in range(2):
            if flag & (CLOSES_LEFT << side) and heads[slot, 0] != -2:
                entry = heads[slot, side]
                heads[slot, side] = -1
                while entry >= 0:
                    if places[entry] >= 0:
                        places[entry] = -1
                        closed[done] = numbers[entry]
                        stops[done] = first + k + (1 if includes_close else 0)
                        closers[done] = first + k
                        done += 1
                    entry = following[entry]
        for side in range(2):
            if flag & (OPENS_LEFT << side):
                if heads[slot, 0] == -2:
                    slot_keys[slot] = key
                    heads[slot, 0] = heads[slot, 1] = -1
                numbers[count] = number + opened
                start_times[count] = times[k]
                keys[count] = key
                sides[count] = side
                places[count] = first + k
                following[count] = heads[slot, side]
                heads[slot, side] = count
                starts[opened] = first + k
                count += 1
                opened += 1
    return count, oldest, opened, done
