"""First come, first served: the operator whose oldest pending event has waited longest."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scheduling.policy import Plan, PriorityOrder, Snapshot, plan_of, same_priority
from penstock.scheduling.topology import Topology


@dataclass(frozen=True)
class FirstCome:
    """Operators by the age of what waits for them. After a turn an operator stands at the end of the line."""

    name: str = "first_come"

    def initial_state(self, topology: Topology) -> None:
        return None

    def plan(self, snapshot: Snapshot, state: None) -> tuple[Plan, None]:
        return plan_of(snapshot, same_priority(len(snapshot.pending)), PriorityOrder.AGE), None
