"""Random: any operator that has work, drawn anew each time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.compiled.fixed import fixed
from penstock.scheduling.policy import Floats, Plan, PriorityOrder, Snapshot, plan_of
from penstock.scheduling.topology import Topology


@dataclass(frozen=True)
class RandomOrder:
    """Equal seeds draw equal numbers. The state counts the plans."""

    seed: int = 0
    name: str = "random"

    def initial_state(self, topology: Topology) -> int:
        return 0

    def plan(self, snapshot: Snapshot, state: int) -> tuple[Plan, int]:
        count = len(snapshot.pending)
        first = ((self.seed << 40) + state * count) & 0xFFFF_FFFF_FFFF_FFFF
        numbers = np.empty(count)
        _uniform(first, numbers)
        return plan_of(snapshot, numbers, PriorityOrder.DRAW), state + 1


@fixed("void(uint64, float64[::1])")
def _uniform(first: int, numbers: Floats) -> None:
    """Numbers above 0 and up to 1 that look random (splitmix64)."""
    for place in range(len(numbers)):
        mixed = (first + np.uint64(place)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        numbers[place] = (np.float64(mixed >> np.uint64(11)) + 1.0) / 2.0**53
