"""Small graphs with arrivals at given times, for schedules that can be worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.sim.arrivals import Groups
from lab.sim.distributions import Constant
from lab.sim.operators import Cost, SimGraph, SimOperator


@dataclass(frozen=True)
class At:
    """Groups at given times: pairs of (ns, events)."""

    groups_at: tuple[tuple[int, int], ...]

    def groups(self, until_ns: int, random: np.random.Generator) -> Groups:
        pairs = [pair for pair in self.groups_at if pair[0] < until_ns]
        return np.array([time for time, _ in pairs], np.int64), np.array([n for _, n in pairs], np.int64)

    def scaled(self, factor: float) -> At:
        return At(tuple((time, round(events * factor)) for time, events in self.groups_at))


def operator(name: str, cost_ns: float, turn_ns: float = 0.0) -> SimOperator:
    return SimOperator(name, Cost(Constant(cost_ns), turn_ns), kind=name)


def line(*costs_ns: float, arrivals: At) -> SimGraph:
    """Operators one after the other."""
    count = len(costs_ns)
    return SimGraph(
        tuple(operator(f"op{number}", cost_ns) for number, cost_ns in enumerate(costs_ns)),
        (*((number + 1,) for number in range(count - 1)), ()),
        {0: arrivals},
    )


def side_by_side(*costs_ns: float, arrivals: dict[int, At]) -> SimGraph:
    """Operators that have nothing to do with one another."""
    return SimGraph(
        tuple(operator(f"op{number}", cost_ns) for number, cost_ns in enumerate(costs_ns)),
        tuple(() for _ in costs_ns),
        arrivals,
    )
