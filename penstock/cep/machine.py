"""The machine: one compiled loop that takes runs of any automaton through the events of all keys.

A run is one way to have begun a match: a position of the automaton, the negated events seen since, and its
last binding. Bindings point backwards and are shared by runs that begin alike. The runs of a key form a list
in the order (start, preference). All is in a few integer matrices: Python can grow, save and restore it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from penstock.cep.addresses import call_condition
from penstock.state.table import ABSENT, FULL, find, hash_key, insert

# Columns of ``places``, one row per position of the automaton.
BINDS, FIRST, STOP, ACCEPTS, WAIT, WATCH, WANTS = range(7)
# Columns of ``follow``: continuations.
TARGET, GUARD = range(2)
# Columns of ``runs``.
POS, SEEN, NODE, SEQ, TIME, ROW, DUE, NEXT = range(8)
# Columns of ``nodes``: one binding each. SEQ is the number of the event in its key.
N_ROW, N_EVENT, N_PARENT, N_SEQ = range(4)
# Columns of ``keys``, by entry: its list of runs, how many events it has seen, and the events of the pattern
# that some run may be waiting or watching for (bits; perhaps too many).
HEAD, TAIL, SIZE, EVENTS, WANTED = range(5)
# Columns of ``rows``: kept events.
R_TIME, R_ORDER, R_SUB, GONE = range(4)
# Columns of ``matches``.
M_NODE, M_TIME, M_ORDER, M_SUB, M_START, M_END = range(6)
# Places in ``counts``; the last eight are where the machine is just now.
(RUNS, FREE, LIVE, NODES, MATCHES, DROPPED, NEW_HEAD, NEW_TAIL, NEW_SIZE, NEW_WANTED) = range(10)
(NOW_TIME, NOW_ORDER, NOW_SUB, NOW_NUMBER, NOW_ODD) = range(10, 15)
COUNTS = 15
# Places in ``modes``.
(MODE, SKIP, CONSUMED, WITHIN, WITHIN_EVENTS, PERIOD, MAX_RUNS, ALL_ROWS, PRUNE, FAN_OUT) = range(10)
# The conditions on earlier events: a bit for each event of the pattern that has some, the address of the
# function that evaluates them, and that of what it is given.
(BOUND, FUNCTION, CONTEXT) = range(10, 13)
MODES = 13

STRICT, NEXT_MATCH, ANY_MATCH = range(3)
NO_SKIP, TO_NEXT, PAST_LAST = range(3)
DONE = -1  # as a position: complete, waiting for preferred runs or earlier starts; SEEN is then its end
UNUSED = -2  # as a position: no run, its row can be used again
NEVER = np.int64(2**63 - 1)

SUB_ROWS = 1 << 20  # as in penstock.operators.rows

Machine = Any  # (places, follow, modes, runs, nodes, keys, counts, matches, rows)
Int = Any


@njit(error_model="numpy")
def advance(m: Machine, table: Any, words: Any, masks: Any, base: Int, start: Int) -> Int:
    """Takes the events from ``start`` on; returns where it stopped, for want of room or at the end.

    Event i is row ``base + i``; bit e of ``masks[i]`` says that what event e of the pattern asks of it alone
    holds.
    """
    places, follow, modes, runs, _, keys, counts, _, rows = m
    opening = np.int64(0)
    for i in range(places[0, FIRST], places[0, STOP]):
        opening |= np.int64(1) << places[follow[i, TARGET], BINDS]
    # An event that fits nothing changes no run, unless it breaks the contiguity or is counted.
    passes = modes[MODE] != STRICT and modes[WITHIN_EVENTS] == 0
    for index in range(start, len(masks)):
        key, mask, row = words[index], masks[index], base + index
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
        sequence = keys[entry, EVENTS]
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


@njit(error_model="numpy")
def expire_all(m: Machine, live: Any, start: Int, before_us: Int) -> Int:
    """Settles all starts whose deadline is before a time; returns the entry at which room ran out, or -1."""
    keys = m[5]
    for entry in range(start, len(live)):
        if live[entry] and keys[entry, HEAD] >= 0:
            if not has_room(m, keys[entry, SIZE]):
                return entry
            expire(m, entry, before_us)
    return -1


@njit(error_model="numpy")
def has_room(m: Machine, size: Int) -> bool:
    """Whether one event can be taken by a key with so many runs, whatever comes of it."""
    _, _, modes, runs, nodes, _, counts, matches, _ = m
    needed = (size + 2) * (modes[FAN_OUT] + 2) + 4
    ticks = np.int64(0)
    if modes[PERIOD] > 0:
        ticks = size * (modes[WITHIN] // modes[PERIOD] + 1)
    free = min(len(runs) - counts[LIVE], len(nodes) - counts[NODES])
    return bool(free >= needed and len(matches) - counts[MATCHES] >= needed + ticks)


# -- lists of runs -------------------------------------------------------------------------------------------


@njit(error_model="numpy")
def new_run(m: Machine) -> Int:
    runs, counts = m[3], m[6]
    run = counts[FREE]
    if run >= 0:
        counts[FREE] = runs[run, NEXT]
    else:
        run = counts[RUNS]
        counts[RUNS] += 1
    counts[LIVE] += 1
    return run


@njit(error_model="numpy")
def free_run(m: Machine, run: Int) -> None:
    runs, counts = m[3], m[6]
    runs[run, POS] = UNUSED
    runs[run, NEXT] = counts[FREE]
    counts[FREE] = run
    counts[LIVE] -= 1


@njit(error_model="numpy")
def copy_run(m: Machine, source: Int, target: Int) -> None:
    runs = m[3]
    for column in range(8):
        runs[target, column] = runs[source, column]


@njit(error_model="numpy")
def append(m: Machine, run: Int) -> None:
    """Puts a run at the end of the list that is being made."""
    runs, counts = m[3], m[6]
    if counts[NEW_TAIL] < 0:
        counts[NEW_HEAD] = run
    else:
        runs[counts[NEW_TAIL], NEXT] = run
    runs[run, NEXT] = -1
    counts[NEW_TAIL] = run
    counts[NEW_SIZE] += 1
    if runs[run, POS] >= 0:
        counts[NEW_WANTED] |= m[0][runs[run, POS], WANTS]


@njit(error_model="numpy")
def behind(m: Machine, mark: Int) -> Int:
    """The first run of the list that is being made behind ``mark``, which was its tail before; -1 if none."""
    if mark < 0:
        return m[6][NEW_HEAD]
    return m[3][mark, NEXT]


@njit(error_model="numpy")
def drop_behind(m: Machine, mark: Int) -> None:
    """Takes out again all runs behind ``mark``."""
    runs, counts = m[3], m[6]
    run = behind(m, mark)
    while run >= 0:
        following = runs[run, NEXT]
        free_run(m, run)
        counts[NEW_SIZE] -= 1
        run = following
    counts[NEW_TAIL] = mark
    if mark < 0:
        counts[NEW_HEAD] = -1
    else:
        runs[mark, NEXT] = -1


# -- one event -----------------------------------------------------------------------------------------------


@njit(error_model="numpy")
def offer(m: Machine, entry: Int, row: Int, sequence: Int, mask: Int, opening: Int) -> None:
    """Offers an event to all runs of its key, start by start; at last, it may start a match itself."""
    _, _, modes, runs, _, keys, counts, _, rows = m
    run = keys[entry, HEAD]
    counts[NEW_HEAD] = counts[NEW_TAIL] = -1
    counts[NEW_SIZE] = counts[NEW_WANTED] = 0
    if mask & keys[entry, WANTED] == 0 and modes[MODE] != STRICT and modes[CONSUMED] == 0:
        # No run can be touched: the list stays as it is, and only a new start is added to it.
        counts[NEW_HEAD], counts[NEW_TAIL] = run, keys[entry, TAIL]
        counts[NEW_SIZE], counts[NEW_WANTED] = keys[entry, SIZE], keys[entry, WANTED]
        run = -1
    if mask & opening != 0:
        opened = open_start(m, entry, row, sequence)
        if run < 0:
            run = opened
        elif opened >= 0:
            runs[keys[entry, TAIL], NEXT] = opened
    while run >= 0:
        start = runs[run, SEQ]
        mark = counts[NEW_TAIL]
        complete = np.int64(-1)  # with contiguity any: the first binding that completes a match
        ended = False  # a complete run stands in the new list: what is less preferred is dropped
        while run >= 0 and runs[run, SEQ] == start:
            following = runs[run, NEXT]
            if rows[row, GONE] != 0 and runs[run, POS] != 0:  # an earlier start has consumed the event
                append(m, run)
            elif ended or rows[row, GONE] != 0 or (modes[CONSUMED] != 0 and holds_gone(m, runs[run, NODE])):
                free_run(m, run)
            elif runs[run, POS] == DONE:
                append(m, run)
                ended = True
            else:
                ended, complete = step(m, run, row, sequence, mask, mark, complete)
            run = following
        if rows[row, GONE] == 0:
            decide(m, mark, complete)
    keys[entry, HEAD] = counts[NEW_HEAD]
    keys[entry, TAIL] = counts[NEW_TAIL]
    keys[entry, SIZE] = counts[NEW_SIZE]
    keys[entry, WANTED] = counts[NEW_WANTED]


@njit(error_model="numpy")
def open_start(m: Machine, entry: Int, row: Int, sequence: Int) -> Int:
    """A run that has bound nothing yet; -1 if its key has too many runs."""
    modes, runs, keys, counts, rows = m[2], m[3], m[5], m[6], m[8]
    if keys[entry, SIZE] >= modes[MAX_RUNS]:
        counts[DROPPED] += 1
        return np.int64(-1)
    run = new_run(m)
    runs[run, POS] = 0
    runs[run, SEEN] = 0
    runs[run, NODE] = -1
    runs[run, SEQ] = sequence
    runs[run, TIME] = rows[row, R_TIME]
    runs[run, ROW] = row
    runs[run, DUE] = deadline(m, rows[row, R_TIME])
    runs[run, NEXT] = -1
    return run


@njit(error_model="numpy")
def deadline(m: Machine, time: Int) -> Int:
    modes = m[2]
    length = modes[PERIOD] if modes[PERIOD] > 0 else modes[WITHIN]
    if length < 0 or time > NEVER - length:
        return NEVER
    return time + length


@njit(error_model="numpy")
def step(
    m: Machine,
    run: Int,
    row: Int,
    sequence: Int,
    mask: Int,
    mark: Int,
    complete: Int,
) -> Any:
    """Takes one run through an event: puts its successors, the preferred first, into the new list.

    Returns whether one of them is complete and cuts off what follows, and the first completing binding.
    """
    places, follow, modes, runs, _, _, _, _, _ = m
    mode, position = modes[MODE], runs[run, POS]
    seen, node = runs[run, SEEN], runs[run, NODE]
    first, stop = places[position, FIRST], places[position, STOP]
    takes = np.int64(0)
    for i in range(first, stop):
        target = follow[i, TARGET]
        if target >= 0 and follow[i, GUARD] & seen == 0:
            event = places[target, BINDS]
            if (mask >> event) & 1 != 0 and holds(m, event, row, node):
                takes |= np.int64(1) << (i - first)
    watch = places[position, WATCH] & ~seen & mask
    event = np.int64(0)
    while watch != 0:
        if watch & 1 != 0 and holds(m, event, row, node):
            seen |= np.int64(1) << event
        watch >>= 1
        event += 1
    stays = position != 0 and (mode == ANY_MATCH or (mode == NEXT_MATCH and takes == 0))
    ended, waited = False, False
    if takes != 0 or not stays:
        for i in range(first, stop):
            if (takes >> (i - first)) & 1 != 0:
                ended, complete = arrive(m, run, follow[i, TARGET], row, sequence, mark, complete)
                if ended:
                    break
            elif follow[i, TARGET] < 0 and mode != ANY_MATCH and not waited:
                waited = True
                waiting = places[position, WAIT]
                if is_open(m, waiting, seen):
                    add_run(m, run, waiting, seen, node, mark)
    if stays and is_open(m, position, seen):
        runs[run, SEEN] = seen
        append(m, run)
    else:
        free_run(m, run)
    return ended, complete


@njit(error_model="numpy")
def holds(m: Machine, event: Int, row: Int, node: Int) -> bool:
    """Whether what the pattern's event asks of earlier events holds as well."""
    modes = m[2]
    if (modes[BOUND] >> event) & 1 == 0:
        return True
    return bool(call_condition(modes[FUNCTION], event, row, node, modes[CONTEXT]) != 0)


@njit(error_model="numpy")
def is_open(m: Machine, position: Int, seen: Int) -> bool:
    """Whether the negated events seen so far leave some continuation."""
    places, follow = m[0], m[1]
    for i in range(places[position, FIRST], places[position, STOP]):  # noqa: SIM110 - compiled
        if follow[i, GUARD] & seen == 0:
            return True
    return False


@njit(error_model="numpy")
def arrive(m: Machine, run: Int, target: Int, row: Int, sequence: Int, mark: Int, complete: Int) -> Any:
    """Binds the event at a position: the successor and, if the match may end there, its completion."""
    places, _, modes, runs, nodes, _, counts, _, rows = m
    node = counts[NODES]
    counts[NODES] += 1
    nodes[node, N_ROW] = row
    nodes[node, N_EVENT] = places[target, BINDS]
    nodes[node, N_PARENT] = runs[run, NODE]
    nodes[node, N_SEQ] = sequence
    goes_on = places[target, FIRST] < places[target, STOP]
    if goes_on:
        add_run(m, run, target, 0, node, mark)
    if places[target, ACCEPTS] == 0:
        return False, complete
    if modes[MODE] != ANY_MATCH:
        done = new_run(m)
        copy_run(m, run, done)
        runs[done, POS] = DONE
        runs[done, SEEN] = rows[row, R_TIME]
        runs[done, NODE] = node
        append(m, done)
        return True, complete
    if modes[SKIP] == NO_SKIP and modes[CONSUMED] == 0:
        report(m, node, runs[run, TIME], rows[row, R_TIME], counts[NOW_NUMBER])
        return False, complete
    return False, node if complete < 0 else complete


@njit(error_model="numpy")
def add_run(m: Machine, run: Int, position: Int, seen: Int, node: Int, mark: Int) -> None:
    """A successor of ``run``, unless a preferred run of the same start is at the same point already."""
    modes, runs, counts = m[2], m[3], m[6]
    if modes[PRUNE] != 0:
        other = behind(m, mark)
        while other >= 0:
            if runs[other, POS] == position and runs[other, SEEN] == seen:
                return
            other = runs[other, NEXT]
    if counts[NEW_SIZE] >= modes[MAX_RUNS]:
        counts[DROPPED] += 1
        return
    added = new_run(m)
    copy_run(m, run, added)
    runs[added, POS] = position
    runs[added, SEEN] = seen
    runs[added, NODE] = node
    append(m, added)


@njit(error_model="numpy")
def decide(m: Machine, mark: Int, complete: Int) -> None:
    """Reports what the event decided for one start, whose runs stand behind ``mark``."""
    modes, runs, counts, rows = m[2], m[3], m[6], m[8]
    first = behind(m, mark)
    if modes[MODE] != ANY_MATCH:
        if modes[SKIP] != PAST_LAST and first >= 0 and runs[first, POS] == DONE:
            report(m, runs[first, NODE], runs[first, TIME], runs[first, SEEN], counts[NOW_NUMBER])
            drop_behind(m, mark)
        return
    if complete < 0:
        return
    root = complete
    while m[4][root, N_PARENT] >= 0:
        root = m[4][root, N_PARENT]
    start_row = m[4][root, N_ROW]
    start_seq = m[4][root, N_SEQ]
    drop_behind(m, mark)
    if modes[SKIP] == PAST_LAST:
        done = new_run(m)
        runs[done, POS] = DONE
        runs[done, SEEN] = rows[m[4][complete, N_ROW], R_TIME]
        runs[done, NODE] = complete
        runs[done, SEQ] = start_seq
        runs[done, TIME] = rows[start_row, R_TIME]
        runs[done, ROW] = start_row
        runs[done, DUE] = deadline(m, rows[start_row, R_TIME])
        append(m, done)
    else:
        report(m, complete, rows[start_row, R_TIME], rows[m[4][complete, N_ROW], R_TIME], counts[NOW_NUMBER])


# -- deadlines, and what is settled --------------------------------------------------------------------------


@njit(error_model="numpy")
def expire(m: Machine, entry: Int, before_us: Int) -> None:
    """Settles the starts of a key whose deadline is before a time, each at its own instant."""
    modes, runs, keys, counts, rows = m[2], m[3], m[5], m[6], m[8]
    if modes[PERIOD] > 0:
        tick(m, entry, before_us)
        return
    run = keys[entry, HEAD]
    while run >= 0 and runs[run, DUE] < before_us:
        counts[NOW_TIME] = runs[run, DUE]
        counts[NOW_ORDER] = rows[runs[run, ROW], R_ORDER]
        counts[NOW_SUB] = rows[runs[run, ROW], R_SUB]
        counts[NOW_NUMBER] = 0
        counts[NOW_ODD] = 1
        finish(m, entry)
        run = keys[entry, HEAD]


@njit(error_model="numpy")
def finish(m: Machine, entry: Int) -> None:
    """The first start of a key is over: what is complete by now is a match, all else is dropped."""
    places, follow, modes, runs, nodes, keys, counts, _, _ = m
    run = keys[entry, HEAD]
    start, last = runs[run, SEQ], runs[run, SEQ]
    one_only = modes[MODE] != ANY_MATCH or modes[SKIP] != NO_SKIP or modes[CONSUMED] != 0
    reported = False
    while run >= 0 and runs[run, SEQ] == start:
        end = NEVER
        if (reported and one_only) or (modes[CONSUMED] != 0 and holds_gone(m, runs[run, NODE])):
            pass
        elif runs[run, POS] == DONE:
            end = runs[run, SEEN]
        else:
            position = runs[run, POS]
            for i in range(places[position, FIRST], places[position, STOP]):
                if follow[i, TARGET] < 0 and follow[i, GUARD] & runs[run, SEEN] == 0:
                    end = counts[NOW_TIME]
        if end != NEVER:
            report(m, runs[run, NODE], runs[run, TIME], end, counts[NOW_NUMBER])
            reported = True
            if modes[SKIP] == PAST_LAST:
                last = nodes[runs[run, NODE], N_SEQ]
        following = runs[run, NEXT]
        free_run(m, run)
        keys[entry, SIZE] -= 1
        run = following
    set_head(m, entry, drop_until(m, entry, run, last))
    if modes[SKIP] == PAST_LAST:
        settle(m, entry)


@njit(error_model="numpy")
def settle(m: Machine, entry: Int) -> None:
    """Reports the matches at the head of the list; what starts before their last events is dropped."""
    runs, nodes, keys, counts = m[3], m[4], m[5], m[6]
    run = keys[entry, HEAD]
    while run >= 0 and runs[run, POS] == DONE:
        report(m, runs[run, NODE], runs[run, TIME], runs[run, SEEN], counts[NOW_NUMBER])
        run = drop_until(m, entry, run, nodes[runs[run, NODE], N_SEQ])
    set_head(m, entry, run)


@njit(error_model="numpy")
def set_head(m: Machine, entry: Int, run: Int) -> None:
    """Lets the list of a key begin at ``run``, which is in it; -1 empties it."""
    keys = m[5]
    keys[entry, HEAD] = run
    if run < 0:
        keys[entry, TAIL] = -1
        keys[entry, WANTED] = 0


@njit(error_model="numpy")
def drop_until(m: Machine, entry: Int, run: Int, last: Int) -> Int:
    """Drops the runs from ``run`` on that start no later than the event ``last``; returns the next one."""
    runs, keys = m[3], m[5]
    while run >= 0 and runs[run, SEQ] <= last:
        following = runs[run, NEXT]
        free_run(m, run)
        keys[entry, SIZE] -= 1
        run = following
    return run


@njit(error_model="numpy")
def tick(m: Machine, entry: Int, before_us: Int) -> None:
    """Reports of a periodic pattern that are due before a time, over all starts in the order of time."""
    modes, runs, keys, counts, rows = m[2], m[3], m[5], m[6], m[8]
    while True:
        due, chosen = before_us, np.int64(-1)
        run = keys[entry, HEAD]
        while run >= 0:
            if runs[run, DUE] < due:
                due, chosen = runs[run, DUE], run
            run = runs[run, NEXT]
        if chosen < 0:
            return
        counts[NOW_TIME] = due
        counts[NOW_ORDER] = rows[runs[chosen, ROW], R_ORDER]
        counts[NOW_SUB] = rows[runs[chosen, ROW], R_SUB]
        counts[NOW_ODD] = 1
        start = runs[chosen, TIME]
        report(m, runs[chosen, NODE], start, due, (due - start) // modes[PERIOD])
        if due - start <= modes[WITHIN] - modes[PERIOD]:
            runs[chosen, DUE] = due + modes[PERIOD]
            continue
        before, run = np.int64(-1), keys[entry, HEAD]
        while run != chosen:
            before, run = run, runs[run, NEXT]
        if before < 0:
            set_head(m, entry, runs[chosen, NEXT])
        else:
            runs[before, NEXT] = runs[chosen, NEXT]
            if keys[entry, TAIL] == chosen:
                keys[entry, TAIL] = before
        free_run(m, chosen)
        keys[entry, SIZE] -= 1


@njit(error_model="numpy")
def report(m: Machine, node: Int, start: Int, end: Int, number: Int) -> None:
    """Notes a match at this instant; takes its events away if they are to be consumed."""
    modes, nodes, counts, matches, rows = m[2], m[4], m[6], m[7], m[8]
    match = counts[MATCHES]
    counts[MATCHES] += 1
    matches[match, M_NODE] = node
    matches[match, M_TIME] = counts[NOW_TIME]
    matches[match, M_ORDER] = counts[NOW_ORDER]
    matches[match, M_SUB] = counts[NOW_SUB] * SUB_ROWS + 2 * number + counts[NOW_ODD]
    matches[match, M_START] = start
    matches[match, M_END] = end
    size = np.int64(0)
    while node >= 0:
        if modes[CONSUMED] != 0:
            rows[nodes[node, N_ROW], GONE] = 1
        size += 1
        node = nodes[node, N_PARENT]
    counts[NOW_NUMBER] += size if modes[ALL_ROWS] != 0 else 1


@njit(error_model="numpy")
def holds_gone(m: Machine, node: Int) -> bool:
    """Whether one of a run's events has been consumed."""
    nodes, rows = m[4], m[8]
    while node >= 0:
        if rows[nodes[node, N_ROW], GONE] != 0:
            return True
        node = nodes[node, N_PARENT]
    return False


# -- memory --------------------------------------------------------------------------------------------------


@njit(error_model="numpy")
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
