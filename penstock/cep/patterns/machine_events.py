"""The machine and one event: it is offered to every run of its key, start by start."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.cep.patterns.addresses import call_condition
from penstock.cep.patterns.machine_layout import (
    ACCEPTS,
    ANY_MATCH,
    BINDS,
    BOUND,
    BY_START,
    CONSUMED,
    CONTEXT,
    DONE,
    DROPPED,
    DUE,
    FIRST,
    FORGETS,
    FUNCTION,
    GONE,
    GUARD,
    HEAD,
    MAX_RUNS,
    MODE,
    N_EVENT,
    N_PARENT,
    N_ROW,
    N_SEQ,
    NEW_HEAD,
    NEW_SIZE,
    NEW_TAIL,
    NEW_WANTED,
    NEXT,
    NEXT_MATCH,
    NO_SKIP,
    NODE,
    NODES,
    NOW_NUMBER,
    PAST_LAST,
    POS,
    PRUNE,
    R_TIME,
    ROW,
    SEEN,
    SEQ,
    SIZE,
    SKIP,
    SPENT,
    STOP,
    STRICT,
    TAIL,
    TARGET,
    UNCOUNTED,
    WAIT,
    WANTED,
    WATCH,
    Int,
    Machine,
)
from penstock.cep.patterns.machine_runs import (
    append,
    behind,
    copy_run,
    deadline,
    drop_behind,
    free_run,
    holds_gone,
    new_run,
    report,
)
from penstock.compiled.fixed import part


@part(error_model="numpy")
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
        if modes[BY_START] != 0:
            counts[UNCOUNTED] = counts[NEW_SIZE]
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


@part(error_model="numpy")
def open_start(m: Machine, entry: Int, row: Int, sequence: Int) -> Int:
    """A run that has bound nothing yet; -1 if its key has too many runs."""
    modes, runs, keys, counts, rows = m[2], m[3], m[5], m[6], m[8]
    if keys[entry, SIZE] >= modes[MAX_RUNS] and modes[BY_START] == 0:
        counts[DROPPED] += 1
        return np.int64(-1)
    run = new_run(m)
    runs[run, POS] = 0
    runs[run, SEEN] = 0
    runs[run, SPENT] = 0
    runs[run, NODE] = -1
    runs[run, SEQ] = sequence
    runs[run, ROW] = row
    runs[run, DUE] = deadline(m, rows[row, R_TIME])
    runs[run, NEXT] = -1
    return run


@part(error_model="numpy")
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
    places, follow, modes, runs, _, _, counts, _, _ = m
    mode, position = modes[MODE], runs[run, POS]
    seen, node = runs[run, SEEN], runs[run, NODE]
    first, stop = places[position, FIRST], places[position, STOP]
    spent, takes = runs[run, SPENT], np.int64(0)
    for i in range(first, stop):
        target = follow[i, TARGET]
        if target >= 0 and follow[i, GUARD] & seen == 0 and (spent >> (i - first)) & 1 == 0:
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
    if takes == 0 and mode != STRICT and position != 0:  # it passes over the event as it is
        # The calls take longer than to see that they are not needed.
        is_first = counts[NEW_TAIL] == mark
        if (not is_first and modes[PRUNE] != 0 and is_pointless(m, position, seen, spent, mark)) or (
            seen != runs[run, SEEN] and not is_open(m, position, seen, spent)
        ):
            free_run(m, run)
        else:
            runs[run, SEEN] = seen
            append(m, run)
        return False, complete
    # What takes the event comes before what passes over it, on either side of the end of the match.
    ended, passes = False, np.int64(0)
    for i in range(first, stop):
        bit = np.int64(1) << (i - first)
        if takes & bit != 0:
            ended, complete = arrive(m, run, follow[i, TARGET], row, sequence, mark, complete)
            if ended:
                break
        elif mode == ANY_MATCH or spent & bit != 0:
            continue
        elif follow[i, TARGET] >= 0:
            passes |= bit
        else:
            if passes != 0 and mode == NEXT_MATCH:
                pass_over(m, run, passes, seen, mark)
            passes = np.int64(0)
            if is_open(m, places[position, WAIT], seen, np.int64(0)):
                add_run(m, run, places[position, WAIT], seen, np.int64(0), node, mark)
    if not ended and passes != 0 and mode == NEXT_MATCH and position != 0:
        pass_over(m, run, passes, seen, mark)
    if mode == ANY_MATCH and position != 0 and is_open(m, position, seen, spent):
        runs[run, SEEN] = seen
        append(m, run)
    else:
        free_run(m, run)
    return ended, complete


@part(error_model="numpy")
def pass_over(m: Machine, run: Int, passes: Int, seen: Int, mark: Int) -> None:
    """A run for those continuations of another that pass over an event."""
    runs = m[3]
    position = runs[run, POS]
    spent = ~passes & np.int64(0x7FFFFFFFFFFFFFFF)
    if seen == 0 or is_open(m, position, seen, spent):
        add_run(m, run, position, seen, spent, runs[run, NODE], mark)


@part(error_model="numpy")
def holds(m: Machine, event: Int, row: Int, node: Int) -> bool:
    """Whether what the pattern's event asks of earlier events holds as well."""
    modes = m[2]
    if (modes[BOUND] >> event) & 1 == 0:
        return True
    return bool(call_condition(modes[FUNCTION], event, row, node, modes[CONTEXT]) != 0)


@part(error_model="numpy")
def is_open(m: Machine, position: Int, seen: Int, spent: Int) -> bool:
    """Whether the negated events seen so far leave some continuation."""
    places, follow = m[0], m[1]
    first = places[position, FIRST]
    for i in range(first, places[position, STOP]):
        if follow[i, GUARD] & seen == 0 and (spent >> (i - first)) & 1 == 0:
            return True
    return False


@part(error_model="numpy")
def is_pointless(m: Machine, position: Int, seen: Int, spent: Int, mark: Int) -> bool:
    """Whether a preferred run of the same start can do all that a run at this point can, now and later."""
    places, runs = m[0], m[3]
    first, stop = places[position, FIRST], places[position, STOP]
    left = ((np.int64(1) << (stop - first)) - 1) & ~spent
    if left & ~places[position, FORGETS] != 0:
        return False
    other = behind(m, mark)
    while other >= 0:
        if runs[other, POS] == position and runs[other, SEEN] & ~seen == 0 and runs[other, SPENT] & left == 0:
            return True
        other = runs[other, NEXT]
    return False


@part(error_model="numpy")
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
        add_run(m, run, target, np.int64(0), np.int64(0), node, mark)
    if places[target, ACCEPTS] == 0:
        return False, complete
    if modes[MODE] != ANY_MATCH:
        done = new_run(m)
        copy_run(m, run, done)
        runs[done, POS] = DONE
        runs[done, SEEN] = rows[row, R_TIME]
        runs[done, SPENT] = 0
        runs[done, NODE] = node
        append(m, done)
        return True, complete
    if modes[SKIP] == NO_SKIP and modes[CONSUMED] == 0:
        report(m, node, rows[runs[run, ROW], R_TIME], rows[row, R_TIME], counts[NOW_NUMBER])
        return False, complete
    return False, node if complete < 0 else complete


@part(error_model="numpy")
def add_run(m: Machine, run: Int, position: Int, seen: Int, spent: Int, node: Int, mark: Int) -> None:
    """A successor of ``run``, unless a preferred run can do all that it can."""
    modes, runs, counts = m[2], m[3], m[6]
    is_first = counts[NEW_TAIL] == mark
    if not is_first and modes[PRUNE] != 0 and is_pointless(m, position, seen, spent, mark):
        return
    if counts[NEW_SIZE] - counts[UNCOUNTED] >= modes[MAX_RUNS]:
        counts[DROPPED] += 1
        return
    added = new_run(m)
    copy_run(m, run, added)
    runs[added, POS] = position
    runs[added, SEEN] = seen
    runs[added, SPENT] = spent
    runs[added, NODE] = node
    append(m, added)


@part(error_model="numpy")
def decide(m: Machine, mark: Int, complete: Int) -> None:
    """Reports what the event decided for one start, whose runs stand behind ``mark``."""
    modes, runs, counts, rows = m[2], m[3], m[6], m[8]
    first = behind(m, mark)
    if modes[MODE] != ANY_MATCH:
        if modes[SKIP] != PAST_LAST and first >= 0 and runs[first, POS] == DONE:
            report(
                m, runs[first, NODE], rows[runs[first, ROW], R_TIME], runs[first, SEEN], counts[NOW_NUMBER]
            )
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
        runs[done, SPENT] = 0
        runs[done, NODE] = complete
        runs[done, SEQ] = start_seq
        runs[done, ROW] = start_row
        runs[done, DUE] = deadline(m, rows[start_row, R_TIME])
        append(m, done)
    else:
        report(m, complete, rows[start_row, R_TIME], rows[m[4][complete, N_ROW], R_TIME], counts[NOW_NUMBER])
