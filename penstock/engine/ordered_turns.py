"""Turns in the order of a policy, in the calling thread: round after round, as long as there is work."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from penstock.engine.observation import Observation, topology_of
from penstock.engine.vertex import Vertex
from penstock.scheduling.policy import Policy, Snapshot

_EPOCH_NS = 1_000_000  # how long a turn should take, for policies that care


class OrderedTurns:
    """Plans a round of turns whenever the last one is done. Nobody comes by later, so where a policy finds
    nobody eligible, everyone with work has a turn."""

    def __init__(self, vertices: list[Vertex], policy: Policy, turn_limit: int) -> None:
        self._vertices = vertices
        self._policy = policy
        self._turn_limit = turn_limit
        self._topology = topology_of(vertices)
        self._state = policy.initial_state(self._topology)
        self._observation = Observation(vertices)
        self._last_turn_ns = np.zeros(len(vertices), np.int64)
        self._since_ns = np.zeros(len(vertices), np.int64)

    def take_round(self, turn: Callable[[Vertex, int], None]) -> bool:
        """One turn for everyone whom the policy wants to have one; False if nobody has work."""
        now_ns = time.perf_counter_ns()
        pending = np.array([_work(vertex, now_ns) for vertex in self._vertices], np.int64)
        if not pending.any():
            return False
        seen = self._observation
        if seen.is_due(now_ns):
            seen.update(now_ns)
        self._since_ns = np.where(pending > 0, np.where(self._since_ns > 0, self._since_ns, now_ns), 0)
        snapshot = Snapshot(
            now_ns,
            self._topology,
            pending,
            self._since_ns,
            self._last_turn_ns.copy(),
            seen.cost_ns,
            seen.selectivity,
            seen.latency_ns,
            seen.latency_gradient,
            self._turn_limit,
            _EPOCH_NS,
        )
        plan, self._state = self._policy.plan(snapshot, self._state)
        priority = (
            plan.priority if (plan.priority > 0.0).any() else np.where(pending > 0, plan.potential, 0.0)
        )
        for number in np.argsort(-priority, kind="stable").tolist():
            if priority[number] <= 0.0:
                break
            vertex = self._vertices[number]
            if _work(vertex, now_ns):
                turn(vertex, int(plan.limit[number]))
                self._last_turn_ns[number] = time.perf_counter_ns()
                self._since_ns[number] = 0
        return True


def _work(vertex: Vertex, now_ns: int) -> int:
    if vertex.finished or vertex.blocked:
        return 0
    return vertex.waiting() if vertex.source is None else max(1, vertex.source.available(now_ns))
