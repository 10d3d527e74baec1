"""Eligibility: who has enough to do, or has waited long enough, to be worth a turn (enjima algorithm 1)."""

from __future__ import annotations

import math

import numba
import numpy as np

from penstock.scheduling.policy import Floats, Integers, Snapshot

#: Above every priority that follows from output costs.
OVERDUE = 1e15


def eligible_priority(
    snapshot: Snapshot,
    potential: Floats,
    limit: Integers,
    event_threshold: float,
    idle_threshold_ns: Floats,
    overdue_ns: float = math.inf,
) -> Floats:
    """The potential of those that are eligible, 0 of all others.

    Eligible: the pending events reach the event threshold, or fill a turn (``limit``), or there are some and
    the idle time exceeds its threshold. As printed the comparison with the event threshold is strict, which
    would leave out C and D of the paper's own example, and an operator so slow that a turn takes fewer events
    than the threshold would have to wait although its turn could not be longer. A backpressured operator has
    no pending events by the definition of a snapshot.

    Those that have waited for ``overdue_ns`` more than their idle threshold go first, the longest before.
    """
    priority = np.empty(len(potential))
    _eligible_priority(
        snapshot.pending,
        snapshot.last_turn_ns,
        snapshot.now_ns,
        event_threshold,
        idle_threshold_ns,
        potential,
        limit,
        snapshot.waiting_since_ns,
        overdue_ns,
        priority,
    )
    return priority


def is_eligible(
    pending: int, idle_ns: int, limit: int, event_threshold: float, idle_threshold_ns: float
) -> bool:
    """The same question for one operator."""
    return pending > 0 and (pending >= event_threshold or pending >= limit or idle_ns > idle_threshold_ns)


@numba.njit(
    "void(int64[::1], int64[::1], int64, float64, float64[::1], float64[::1], int64[::1], int64[::1],"
    " float64, float64[::1])",
    cache=True,
)
def _eligible_priority(
    pending: Integers,
    last_turn_ns: Integers,
    now_ns: int,
    event_threshold: float,
    idle_threshold_ns: Floats,
    potential: Floats,
    limit: Integers,
    waiting_since_ns: Integers,
    overdue_ns: float,
    priority: Floats,
) -> None:
    for operator in range(len(pending)):
        waiting = pending[operator]
        has_waited = now_ns - last_turn_ns[operator] > idle_threshold_ns[operator]
        enough = waiting >= event_threshold or waiting >= limit[operator]
        priority[operator] = potential[operator] if waiting > 0 and (enough or has_waited) else 0.0
        if priority[operator] > 0.0 and waiting_since_ns[operator] > 0:
            beyond_ns = now_ns - waiting_since_ns[operator] - idle_threshold_ns[operator] - overdue_ns
            if beyond_ns > 0.0:
                priority[operator] = OVERDUE + beyond_ns
