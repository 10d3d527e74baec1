"""The machine's runs: their rows, the list of them that is being made, and what they report."""

from __future__ import annotations

import numpy as np

from penstock.cep.patterns.machine_layout import (
    ALL_ROWS,
    CONSUMED,
    FOREVER,
    FREE,
    GONE,
    LIVE,
    M_END,
    M_NODE,
    M_ORDER,
    M_SEQ,
    M_START,
    M_SUB,
    M_TIME,
    MATCHES,
    N_PARENT,
    N_ROW,
    N_SEQ,
    NEVER,
    NEW_HEAD,
    NEW_SIZE,
    NEW_TAIL,
    NEW_WANTED,
    NEXT,
    NOW_NUMBER,
    NOW_ODD,
    NOW_ORDER,
    NOW_SUB,
    NOW_TIME,
    PERIOD,
    POS,
    RUN_WIDTH,
    RUNS,
    SUB_ROWS,
    UNUSED,
    WANTS,
    WITHIN,
    Int,
    Machine,
)
from penstock.compiled.fixed import part


@part(error_model="numpy")
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


@part(error_model="numpy")
def free_run(m: Machine, run: Int) -> None:
    runs, counts = m[3], m[6]
    runs[run, POS] = UNUSED
    runs[run, NEXT] = counts[FREE]
    counts[FREE] = run
    counts[LIVE] -= 1


@part(error_model="numpy")
def copy_run(m: Machine, source: Int, target: Int) -> None:
    runs = m[3]
    for column in range(RUN_WIDTH):
        runs[target, column] = runs[source, column]


@part(error_model="numpy")
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


@part(error_model="numpy")
def behind(m: Machine, mark: Int) -> Int:
    """The first run of the list that is being made behind ``mark``, which was its tail before; -1 if none."""
    if mark < 0:
        return m[6][NEW_HEAD]
    return m[3][mark, NEXT]


@part(error_model="numpy")
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


@part(error_model="numpy")
def deadline(m: Machine, time: Int) -> Int:
    modes = m[2]
    length = modes[PERIOD] if modes[PERIOD] > 0 else modes[WITHIN]
    if length < 0:
        length = FOREVER
    if time > NEVER - 1 - length:
        return NEVER - 1  # before the end of the input, which decides everything
    return time + length


@part(error_model="numpy")
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
        matches[match, M_SEQ] = nodes[node, N_SEQ]
        node = nodes[node, N_PARENT]
    counts[NOW_NUMBER] += size if modes[ALL_ROWS] != 0 else 1


@part(error_model="numpy")
def holds_gone(m: Machine, node: Int) -> bool:
    """Whether one of a run's events has been consumed."""
    nodes, rows = m[4], m[8]
    while node >= 0:
        if rows[nodes[node, N_ROW], GONE] != 0:
            return True
        node = nodes[node, N_PARENT]
    return False
