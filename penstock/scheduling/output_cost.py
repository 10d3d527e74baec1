"""Output selectivity and output cost: what it takes to push an event out at the end (enjima eq. 1 and 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed
from penstock.scheduling.policy import Floats
from penstock.scheduling.topology import Topology


def output_selectivity(topology: Topology, selectivity: Floats) -> Floats:
    """Events that reach a sink for each one that the operator takes, on the way where most do: eq. 1."""
    result = np.empty(len(topology))
    lists = topology.child_lists
    _output_selectivity(lists.starts, lists.items, selectivity, result)
    return result


def output_cost(topology: Topology, cost_ns: Floats, selectivity: Floats) -> Floats:
    """Time for one event to leave at a sink, if this operator's events are pushed on: eq. 2.

    The sum is over the operator and all its distinct descendants, as in the min-latency paper that the
    equation extends; as printed it would stop at the next operators.
    """
    per_output = cost_ns / output_selectivity(topology, selectivity)
    lists = topology.own_and_descendant_lists
    result: Floats = np.add.reduceat(per_output[lists.items], lists.starts[:-1])
    return result


@fixed("void(int64[::1], int64[::1], float64[::1], float64[::1])")
def _output_selectivity(
    starts: NDArray[np.int64], children: NDArray[np.int64], selectivity: Floats, result: Floats
) -> None:
    for operator in range(len(selectivity) - 1, -1, -1):
        most = 0.0
        for place in range(starts[operator], starts[operator + 1]):
            most = max(most, result[children[place]])
        result[operator] = selectivity[operator] * (most if most > 0.0 else 1.0)
