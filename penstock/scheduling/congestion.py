"""Congestion-aware: the longest queue first (edgewise 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.scheduling.policy import EpochPolicy, Plan, Snapshot, same_limit
from penstock.scheduling.topology import Topology


@dataclass(frozen=True)
class Congestion(EpochPolicy):
    """Operators by the number of events that wait for them. Equal queues: the one downstream first, it frees
    memory."""

    follows_queues: ClassVar[bool] = True
    name: str = "congestion"

    def initial_state(self, topology: Topology) -> None:
        return None

    def plan(self, snapshot: Snapshot, state: None) -> tuple[Plan, None]:
        longest = snapshot.pending.astype(float)
        return Plan(longest, same_limit(len(longest), snapshot.turn_limit), longest), None

    def refresh(
        self, operator: int, pending: int, plan: Plan, state: Any, *, current: float = 0.0, idle_ns: int = 0
    ) -> float:
        return float(pending)
