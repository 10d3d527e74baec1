"""Congestion-aware: the longest queue first (edgewise 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scheduling.policy import Snapshot, Turn


@dataclass(frozen=True)
class Congestion:
    """Operators by the number of events that wait for them. Equal queues: the one downstream first, it
    frees memory."""

    name: str = "congestion"

    def initial_state(self) -> None:
        return None

    def plan(self, snapshot: Snapshot, state: None) -> tuple[list[Turn], None]:
        pending, limit = snapshot.pending, snapshot.turn_limit
        waiting = [operator for operator in range(len(pending) - 1, -1, -1) if pending[operator]]
        waiting.sort(key=pending.__getitem__, reverse=True)
        return [Turn(operator, limit) for operator in waiting], None
