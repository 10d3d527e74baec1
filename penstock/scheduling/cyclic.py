"""Going round: every operator in a fixed order, on and on."""

from __future__ import annotations

import numpy as np

from penstock.compiled.fixed import fixed
from penstock.scheduling.policy import Floats, Integers, Plan, PriorityOrder, Snapshot, plan_of

#: Above all rounds of an epoch: every round lies below the one before by the number of operators.
_FIRST_ROUND = 2.0**40


class Cyclic:
    """The base of policies that go round. Where to go on follows from who ran last."""

    def plan_round(self, snapshot: Snapshot, place: Integers) -> Plan:
        """``place[i]``: where in the order operator i stands."""
        potential = np.empty(len(place))
        _first_round(place, snapshot.last_turn_ns, potential)
        return plan_of(snapshot, potential, PriorityOrder.ROUND)


def places(order: tuple[int, ...]) -> Integers:
    """Where each operator stands in an order of them all."""
    place = np.empty(len(order), np.int64)
    place[list(order)] = np.arange(len(order))
    return place


@fixed("void(int64[::1], int64[::1], float64[::1])")
def _first_round(place: Integers, last_turn_ns: Integers, potential: Floats) -> None:
    count = len(place)
    latest_ns, begin = 0, 0
    for operator in range(count):
        if last_turn_ns[operator] > latest_ns:
            latest_ns, begin = last_turn_ns[operator], place[operator] + 1
    for operator in range(count):
        potential[operator] = _FIRST_ROUND - (place[operator] - begin + count) % count
