"""Congestion-aware: the longest queue first (edgewise 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numba
import numpy as np
from numpy.typing import NDArray

from penstock.scheduling.policy import EpochPolicy, Floats, Integers, Plan, Snapshot, same_limit
from penstock.scheduling.topology import Topology

IsSource = NDArray[np.bool_]


@dataclass(frozen=True)
class Congestion(EpochPolicy):
    """Operators by the number of events that wait for them. Equal queues: the one downstream first, it frees
    memory.

    What a source could read does not wait in a queue, and often has no end: it counts as half a turn at the
    most. Else sources would run until memory is full, and every event would wait behind full queues. The
    state says who is a source.
    """

    follows_queues: ClassVar[bool] = True
    name: str = "congestion"

    def initial_state(self, topology: Topology) -> IsSource:
        return np.array([kind == "source" for kind in topology.kinds], bool)

    def plan(self, snapshot: Snapshot, state: IsSource) -> tuple[Plan, IsSource]:
        lengths = np.empty(len(snapshot.pending))
        _lengths(snapshot.pending, state, _most(snapshot.turn_limit), lengths)
        return Plan(lengths, same_limit(len(lengths), snapshot.turn_limit), lengths), state

    def refresh(
        self,
        operator: int,
        pending: int,
        plan: Plan,
        state: IsSource,
        *,
        current: float = 0.0,
        idle_ns: int = 0,
    ) -> float:
        return float(min(pending, _most(int(plan.limit[operator]))) if state[operator] else pending)


def _most(turn_limit: int) -> int:
    return max(1, turn_limit // 2)


@numba.njit("void(int64[::1], boolean[::1], int64, float64[::1])", cache=True)
def _lengths(pending: Integers, is_source: IsSource, most: int, lengths: Floats) -> None:
    for operator in range(len(pending)):
        waiting = pending[operator]
        lengths[operator] = min(waiting, most) if is_source[operator] else waiting
