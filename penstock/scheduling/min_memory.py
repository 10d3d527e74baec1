"""Minimum memory: the steepest way down in the progress chart first (chain scheduling, Babcock et al.)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed
from penstock.scheduling.min_latency import Known
from penstock.scheduling.policy import Floats, Plan, Snapshot, by_rank, plan_of
from penstock.scheduling.topology import Topology


@dataclass(frozen=True)
class MinMemory:
    """By the slope of the lower envelope that the operator lies on: the events that are got rid of per time.
    Of equal slopes the operator upstream first, which is the start of its chain."""

    name: str = "min_memory"

    def initial_state(self, topology: Topology) -> Known:
        return Known.nothing()

    def plan(self, snapshot: Snapshot, state: Known) -> tuple[Plan, Known]:
        if not state.holds_for(snapshot):
            cost_ns, selectivity = snapshot.cost_ns, snapshot.selectivity
            slopes = envelope_slopes(snapshot.topology, cost_ns, selectivity)
            # Slopes may be negative, where events become more; priorities must not be.
            state = Known(cost_ns, selectivity, by_rank(np.argsort(-slopes, kind="stable")))
        return plan_of(snapshot, state.priority), state


def envelope_slopes(topology: Topology, cost_ns: Floats, selectivity: Floats) -> Floats:
    """Per operator, the fall of its segment of the lower envelope, in events per ns.

    The progress chart of a path: one event enters; after k operators t_k time was spent on it and m_k events
    are left of it, none after the last. The envelope goes from each of its points to the later one with the
    steepest fall. An operator on several paths takes its steepest.
    """
    slopes = np.full(len(topology), -np.inf)
    lists = topology.path_lists
    _envelope_slopes(lists.starts, lists.items, cost_ns, selectivity, slopes)
    return slopes


@fixed("void(int64[::1], int64[::1], float64[::1], float64[::1], float64[::1])")
def _envelope_slopes(
    starts: NDArray[np.int64],
    operators: NDArray[np.int64],
    cost_ns: Floats,
    selectivity: Floats,
    slopes: Floats,
) -> None:
    for path in range(len(starts) - 1):
        first, end = starts[path], starts[path + 1]
        left = 1.0  # events left where the segment begins
        while first < end:
            spent, size, before = 0.0, left, left
            best, best_end, best_size = -np.inf, first, left
            for place in range(first, end):
                operator = operators[place]
                spent += before * cost_ns[operator]
                size = 0.0 if place == end - 1 else before * selectivity[operator]
                slope = (left - size) / spent
                if slope >= best:
                    best, best_end, best_size = slope, place + 1, size
                before = size
            for place in range(first, best_end):
                slopes[operators[place]] = max(slopes[operators[place]], best)
            first, left = best_end, best_size
