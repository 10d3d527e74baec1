"""Minimum latency: the operator with the lowest output cost (Aurora; enjima 5.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.scheduling.output_cost import output_cost
from penstock.scheduling.policy import Floats, Plan, Snapshot, plan_of
from penstock.scheduling.topology import Topology


class Known(NamedTuple):
    """Priorities, and the measured costs and selectivities that they were computed from."""

    cost_ns: Floats
    selectivity: Floats
    priority: Floats

    def holds_for(self, snapshot: Snapshot) -> bool:
        return self.cost_ns is snapshot.cost_ns and self.selectivity is snapshot.selectivity

    @classmethod
    def nothing(cls) -> Known:
        return cls(np.empty(0), np.empty(0), np.empty(0))


@dataclass(frozen=True)
class MinLatency:
    """Whoever needs least additional time to bring an event out. The state only saves computing again."""

    name: str = "min_latency"

    def initial_state(self, topology: Topology) -> Known:
        return Known.nothing()

    def plan(self, snapshot: Snapshot, state: Known) -> tuple[Plan, Known]:
        if not state.holds_for(snapshot):
            cost_ns, selectivity = snapshot.cost_ns, snapshot.selectivity
            state = Known(cost_ns, selectivity, 1.0 / output_cost(snapshot.topology, cost_ns, selectivity))
        return plan_of(snapshot, state.priority), state
