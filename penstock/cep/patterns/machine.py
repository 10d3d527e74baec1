"""The machine: one compiled loop that takes runs of any automaton through the events of all keys.

A run is one way to have begun a match: a position of the automaton, the negated events seen since, and its
last binding. Bindings point backwards and are shared by runs that begin alike. The runs of a key form a list
in the order (start, preference). All is in a few integer matrices: Python can grow, save and restore it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from penstock.cep.patterns.machine_deadlines import expire, finish, set_head, settle
from penstock.cep.patterns.machine_events import offer
from penstock.cep.patterns.machine_layout import (
    BINDS,
    BY_START,
    EVENTS,
    FAN_OUT,
    FIRST,
    HEAD,
    LIVE,
    MATCHES,
    MODE,
    N_PARENT,
    NODE,
    NODES,
    NOW_NUMBER,
    NOW_ODD,
    NOW_ORDER,
    NOW_SUB,
    NOW_TIME,
    PAST_LAST,
    PERIOD,
    POS,
    R_ORDER,
    R_SUB,
    R_TIME,
    RUNS,
    SEQ,
    SIZE,
    SKIP,
    STOP,
    STRICT,
    TARGET,
    UNUSED,
    WITHIN,
    WITHIN_EVENTS,
    Int,
    Machine,
)
from penstock.compiled.fixed import fixed, part
from penstock.state.table import ABSENT, FULL, TABLE_TYPE, find, hash_key, insert

_INTS, _MATRIX = types.Array(types.int64, 1, "C"), types.Array(types.int64, 2, "C")
_FLAGS = types.Array(types.boolean, 1, "C")
#: The Numba type of ``Machine``.
MACHINE = types.Tuple((_MATRIX, _MATRIX, _INTS, _MATRIX, _MATRIX, _MATRIX, _INTS, _MATRIX, _MATRIX))  # type: ignore[no-untyped-call]


@fixed(types.int64(MACHINE, TABLE_TYPE, _MATRIX, _INTS, _INTS, _FLAGS, types.int64, types.int64))
def advance(
    m: Machine, table: Any, words: Any, masks: Any, numbers: Any, opens: Any, base: Int, start: Int
) -> Int:
    """Takes the events from ``start`` on; returns where it stopped, for want of room or at the end.

    Event i is row ``base + i``; bit e of ``masks[i]`` says that what event e of the pattern asks of it alone
    holds. By start, ``numbers[i]`` is its place in the whole stream and ``opens[i]`` whether it may begin a
    match here.
    """
    places, follow, modes, runs, _, keys, counts, _, rows = m
    by_start = modes[BY_START] != 0
    could_open = np.int64(0)
    for i in range(places[0, FIRST], places[0, STOP]):
        could_open |= np.int64(1) << places[follow[i, TARGET], BINDS]
    # An event that fits nothing changes no run, unless it breaks the contiguity or is counted.
    passes = modes[MODE] != STRICT and modes[WITHIN_EVENTS] == 0
    for index in range(start, len(masks)):
        key, mask, row = words[index], masks[index], base + index
        opening = could_open if not by_start or opens[index] else np.int64(0)
        hashed = hash_key(key)
        entry = find(table, key, hashed)
        if entry == ABSENT:
            if mask & opening == 0:
                continue
            entry = insert(table, key, hashed)
            if entry == FULL:
                return index
            set_head(m, entry, -1)
            keys[entry, SIZE] = 0
            keys[entry, EVENTS] = 0
        elif (keys[entry, HEAD] < 0 and mask & opening == 0) or (mask == 0 and passes):
            keys[entry, EVENTS] += 1
            continue
        if not has_room(m, keys[entry, SIZE]):
            return index
        expire(m, entry, rows[row, R_TIME])
        sequence = numbers[index] if by_start else keys[entry, EVENTS]
        keys[entry, EVENTS] += 1
        counts[NOW_TIME] = rows[row, R_TIME]
        counts[NOW_ORDER] = rows[row, R_ORDER]
        counts[NOW_SUB] = rows[row, R_SUB]
        counts[NOW_NUMBER] = 0
        counts[NOW_ODD] = 0
        if modes[WITHIN_EVENTS] > 0:
            run = keys[entry, HEAD]
            while run >= 0 and sequence - runs[run, SEQ] >= modes[WITHIN_EVENTS]:
                finish(m, entry)
                run = keys[entry, HEAD]
        offer(m, entry, row, sequence, mask, opening)
        if modes[SKIP] == PAST_LAST:
            settle(m, entry)
    return len(masks)


@fixed(types.int64(MACHINE, _FLAGS, types.int64, types.int64))
def expire_all(m: Machine, live: Any, start: Int, before_us: Int) -> Int:
    """Settles all starts whose deadline is before a time; returns the entry at which room ran out, or -1."""
    keys = m[5]
    for entry in range(start, len(live)):
        if live[entry] and keys[entry, HEAD] >= 0:
            if not has_room(m, keys[entry, SIZE]):
                return entry
            expire(m, entry, before_us)
    return -1


@part(error_model="numpy")
def has_room(m: Machine, size: Int) -> bool:
    """Whether one event can be taken by a key with so many runs, whatever comes of it."""
    _, _, modes, runs, nodes, _, counts, matches, _ = m
    needed = (size + 2) * (modes[FAN_OUT] + 2) + 4
    ticks = np.int64(0)
    if modes[PERIOD] > 0:
        ticks = size * (modes[WITHIN] // modes[PERIOD] + 1)
    free = min(len(runs) - counts[LIVE], len(nodes) - counts[NODES])
    return bool(free >= needed and len(matches) - counts[MATCHES] >= needed + ticks)


@fixed(types.void(MACHINE))
def compact(m: Machine) -> None:
    """Moves the bindings that runs still have to the front, in order: parents stay before children."""
    runs, nodes, counts = m[3], m[4], m[6]
    places = np.zeros(counts[NODES], np.int64)
    for run in range(counts[RUNS]):
        if runs[run, POS] == UNUSED:
            continue
        node = runs[run, NODE]
        while node >= 0 and places[node] == 0:
            places[node] = 1
            node = nodes[node, N_PARENT]
    kept = np.int64(0)
    for node in range(counts[NODES]):
        if places[node] == 0:
            continue
        places[node] = kept
        for column in range(4):
            nodes[kept, column] = nodes[node, column]
        if nodes[kept, N_PARENT] >= 0:
            nodes[kept, N_PARENT] = places[nodes[kept, N_PARENT]]
        kept += 1
    counts[NODES] = kept
    for run in range(counts[RUNS]):
        if runs[run, POS] != UNUSED:
            runs[run, NODE] = places[runs[run, NODE]]
