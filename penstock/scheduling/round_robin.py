"""Round robin: every operator that has work, in turn, going on after the one that was last."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.scheduling.policy import Snapshot, Turn


@dataclass(frozen=True)
class RoundRobin:
    """Fair in turns. The state is the operator to begin with."""

    name: str = "round_robin"

    def initial_state(self) -> int:
        return 0

    def plan(self, snapshot: Snapshot, state: int) -> tuple[list[Turn], int]:
        pending, limit = snapshot.pending, snapshot.turn_limit
        count = len(pending)
        order = (*range(state, count), *range(min(state, count)))
        turns = [Turn(operator, limit) for operator in order if pending[operator]]
        return turns, (turns[-1].operator + 1) % count if turns else state
