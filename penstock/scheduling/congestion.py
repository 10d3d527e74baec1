"""Congestion-aware: the longest queue first (edgewise 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scheduling.policy import Plan, PriorityOrder, Snapshot, plan_of, same_priority
from penstock.scheduling.topology import Topology


@dataclass(frozen=True)
class Congestion:
    """Operators by the number of events that wait for them. Equal queues: by a plan the one downstream first,
    it frees memory."""

    name: str = "congestion"

    def initial_state(self, topology: Topology) -> None:
        return None

    def plan(self, snapshot: Snapshot, state: None) -> tuple[Plan, None]:
        return plan_of(snapshot, same_priority(len(snapshot.pending)), PriorityOrder.LENGTH), None
