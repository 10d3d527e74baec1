"""Hand-overs of the interpreter lock: when a second worker costs more than it brings."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from penstock.scheduling.policy import Integers, Plan

#: What it costs when one thread takes the interpreter lock from another, estimated from runs with one and two
#: workers on a virtual machine. Turns shorter than this gain nothing from a second worker.
_HAND_OVER_NS = 50_000


def is_long(pending: int, least_cost_ns: float) -> bool:
    """Whether a turn on so many events is worth a second worker whatever else there is."""
    return pending * least_cost_ns > 2 * _HAND_OVER_NS


def is_better_alone(plan: Plan, pending: Integers, least_cost_ns: NDArray[np.float64]) -> bool:
    """Whether short turns would lose more by hand-overs than long ones gain by running together."""
    return bool(_is_better_alone(plan.priority, pending, plan.limit, least_cost_ns, _HAND_OVER_NS))


@numba.njit("boolean(float64[::1], int64[::1], int64[::1], float64[::1], int64)", cache=True)
def _is_better_alone(
    priority: NDArray[np.float64],
    pending: Integers,
    limit: Integers,
    least_cost_ns: NDArray[np.float64],
    hand_over_ns: int,
) -> bool:
    long_ns, short = 0.0, 0
    for operator in range(len(priority)):
        if priority[operator] > 0.0 and pending[operator] > 0:
            cost_ns = min(pending[operator], limit[operator]) * least_cost_ns[operator]
            if cost_ns < hand_over_ns:
                short += 1
            else:
                long_ns += cost_ns
    return long_ns < short * hand_over_ns
