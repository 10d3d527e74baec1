"""First come, first served: the operator whose oldest pending event has waited longest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from penstock.scheduling.policy import EpochPolicy, Floats, Integers, Plan, Snapshot, plan_of
from penstock.scheduling.topology import Topology

_JUST_CAME = 1.0


@dataclass(frozen=True)
class FirstCome(EpochPolicy):
    """Operators by the age of what waits for them. After a turn an operator stands at the end of the line."""

    name: str = "first_come"

    def initial_state(self, topology: Topology) -> None:
        return None

    def plan(self, snapshot: Snapshot, state: None) -> tuple[Plan, None]:
        age_ns = np.empty(len(snapshot.pending))
        _ages(snapshot.waiting_since_ns, snapshot.now_ns, age_ns)
        return plan_of(snapshot, age_ns), None

    def refresh(
        self, operator: int, pending: int, plan: Plan, state: Any, *, current: float = 0.0, idle_ns: int = 0
    ) -> float:
        return _JUST_CAME if pending else 0.0


@numba.njit("void(int64[::1], int64, float64[::1])", cache=True)
def _ages(waiting_since_ns: Integers, now_ns: int, age_ns: Floats) -> None:
    for operator in range(len(age_ns)):
        since_ns = waiting_since_ns[operator]
        age_ns[operator] = _JUST_CAME + (max(now_ns - since_ns, 0) if since_ns > 0 else 0)
