"""Round robin: every operator that has work, in turn, going on after the one that was last."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scheduling.cyclic import Cyclic, places
from penstock.scheduling.policy import Integers, Plan, Snapshot
from penstock.scheduling.topology import Topology


@dataclass(frozen=True)
class RoundRobin(Cyclic):
    """Fair in turns. The order is that of the operators' numbers, sources first."""

    name: str = "round_robin"

    def initial_state(self, topology: Topology) -> Integers:
        return places(tuple(range(len(topology))))

    def plan(self, snapshot: Snapshot, state: Integers) -> tuple[Plan, Integers]:
        return self.plan_round(snapshot, state), state
