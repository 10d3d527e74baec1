"""Highest rate: the operator whose time brings the most events out at the end (Sharaf et al.)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed
from penstock.scheduling.min_latency import Known
from penstock.scheduling.policy import Floats, Plan, Snapshot, plan_of
from penstock.scheduling.topology import Topology


@dataclass(frozen=True)
class HighestRate:
    """By global output rate: events that leave at sinks per time spent on one event here and on all it
    becomes."""

    name: str = "highest_rate"

    def initial_state(self, topology: Topology) -> Known:
        return Known.nothing()

    def plan(self, snapshot: Snapshot, state: Known) -> tuple[Plan, Known]:
        if not state.holds_for(snapshot):
            cost_ns, selectivity = snapshot.cost_ns, snapshot.selectivity
            state = Known(cost_ns, selectivity, output_rate(snapshot.topology, cost_ns, selectivity))
        return plan_of(snapshot, state.priority), state


def output_rate(topology: Topology, cost_ns: Floats, selectivity: Floats) -> Floats:
    """Of each operator: with s its selectivity and c its cost, G = c + s · Σ G of its readers is the time for
    all that becomes of one event, O = s · Σ O of its readers is what comes out, and the rate is O / G. An
    operator that nobody reads lets events out: O = s."""
    lists = topology.child_lists
    result = np.empty(len(topology))
    _output_rate(lists.starts, lists.items, cost_ns, selectivity, result)
    return result


@fixed("void(int64[::1], int64[::1], float64[::1], float64[::1], float64[::1])")
def _output_rate(
    starts: NDArray[np.int64],
    children: NDArray[np.int64],
    cost_ns: Floats,
    selectivity: Floats,
    result: Floats,
) -> None:
    count = len(cost_ns)
    whole_cost, output = np.empty(count), np.empty(count)
    for operator in range(count - 1, -1, -1):
        cost_after, output_after = 0.0, 0.0
        for place in range(starts[operator], starts[operator + 1]):
            cost_after += whole_cost[children[place]]
            output_after += output[children[place]]
        if starts[operator] == starts[operator + 1]:
            output_after = 1.0
        whole_cost[operator] = cost_ns[operator] + selectivity[operator] * cost_after
        output[operator] = selectivity[operator] * output_after
        result[operator] = output[operator] / whole_cost[operator]
