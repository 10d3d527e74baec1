"""The machine and time: starts that are over, and what is settled by that."""

from __future__ import annotations

import numpy as np

from penstock.cep.patterns.machine_layout import (
    ANY_MATCH,
    CONSUMED,
    DONE,
    DUE,
    FIRST,
    GUARD,
    HEAD,
    MODE,
    N_ROW,
    N_SEQ,
    NEVER,
    NEXT,
    NO_SKIP,
    NODE,
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
    ROW,
    SEEN,
    SEQ,
    SIZE,
    SKIP,
    SPENT,
    STOP,
    TAIL,
    TARGET,
    WANTED,
    WITHIN,
    Int,
    Machine,
)
from penstock.cep.patterns.machine_runs import free_run, holds_gone, report
from penstock.compiled.fixed import part


@part(error_model="numpy")
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


@part(error_model="numpy")
def finish(m: Machine, entry: Int) -> None:
    """The first start of a key is over: what is complete by now is a match, all else is dropped."""
    places, follow, modes, runs, nodes, keys, counts, _, rows = m
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
            first = places[runs[run, POS], FIRST]
            for i in range(first, places[runs[run, POS], STOP]):
                is_left = (runs[run, SPENT] >> (i - first)) & 1 == 0
                if is_left and follow[i, TARGET] < 0 and follow[i, GUARD] & runs[run, SEEN] == 0:
                    end = counts[NOW_TIME]
            if end != NEVER and counts[NOW_ODD] != 0 and modes[WITHIN] < 0:  # the input has ended
                end = rows[nodes[runs[run, NODE], N_ROW], R_TIME]
        if end != NEVER:
            report(m, runs[run, NODE], rows[runs[run, ROW], R_TIME], end, counts[NOW_NUMBER])
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


@part(error_model="numpy")
def settle(m: Machine, entry: Int) -> None:
    """Reports the matches at the head of the list; what starts before their last events is dropped."""
    runs, nodes, keys, counts, rows = m[3], m[4], m[5], m[6], m[8]
    run = keys[entry, HEAD]
    while run >= 0 and runs[run, POS] == DONE:
        report(m, runs[run, NODE], rows[runs[run, ROW], R_TIME], runs[run, SEEN], counts[NOW_NUMBER])
        run = drop_until(m, entry, run, nodes[runs[run, NODE], N_SEQ])
    set_head(m, entry, run)


@part(error_model="numpy")
def set_head(m: Machine, entry: Int, run: Int) -> None:
    """Lets the list of a key begin at ``run``, which is in it; -1 empties it."""
    keys = m[5]
    keys[entry, HEAD] = run
    if run < 0:
        keys[entry, TAIL] = -1
        keys[entry, WANTED] = 0


@part(error_model="numpy")
def drop_until(m: Machine, entry: Int, run: Int, last: Int) -> Int:
    """Drops the runs from ``run`` on that start no later than the event ``last``; returns the next one."""
    runs, keys = m[3], m[5]
    while run >= 0 and runs[run, SEQ] <= last:
        following = runs[run, NEXT]
        free_run(m, run)
        keys[entry, SIZE] -= 1
        run = following
    return run


@part(error_model="numpy")
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
        start = rows[runs[chosen, ROW], R_TIME]
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
