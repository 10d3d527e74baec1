"""Plans: what is known of the operators goes to the policy, and priorities come back."""

from __future__ import annotations

import time

import numpy as np

from penstock.engine.figures import Figures
from penstock.engine.observation import Observation, topology_of
from penstock.engine.vertex import Vertex
from penstock.scheduling.policy import Integers, Plan, Policy, Rule, Snapshot

#: A plan of many operators takes some ten microseconds. It is made anew after this many times what the last
#: one took, so that planning takes a percent of a processor, but at least every so many epochs: periods of up
#: to 5 ms cost neither latency nor throughput (enjima 5.3), and with hundreds of operators a round of turns
#: takes longer than that anyway.
_PAUSE = 100
_MOST_EPOCHS = 10


class Planning:
    """Keeps the plan that holds. Not thread-safe."""

    def __init__(
        self,
        vertices: list[Vertex],
        figures: Figures,
        policy: Policy,
        turn_limit: int,
        epoch_ns: int,
        workers: int,
    ) -> None:
        self._policy, self._figures = policy, figures
        self._turn_limit, self._epoch_ns, self._workers = turn_limit, epoch_ns, workers
        self._topology = topology_of(vertices)
        self._observation = Observation(vertices)
        self._observation.busy = workers  # until it is known
        self._state = policy.initial_state(self._topology)
        self._period_ns = epoch_ns  # from plan to plan
        self.follows_queues = bool(getattr(policy, "follows_queues", False))
        self.plan = Plan(np.zeros(0), np.zeros(0, np.int64), np.zeros(0))
        self.due_ns = 0  # when the next plan is to be made
        self.spent_ns = 0  # of the processor, on all this

    def observe(self, now_ns: int) -> None:
        """Looks at what operators cost and send, now and then."""
        if self._observation.is_due(now_ns):
            began_ns = time.thread_time_ns()
            self._observation.update(now_ns)
            self._figures.set_rates(self._observation.rate_per_ns)
            self.spent_ns += time.thread_time_ns() - began_ns

    def make(self, now_ns: int) -> Integers:
        """Makes a plan; what each operator has to do by now."""
        began_ns = time.thread_time_ns()
        figures, seen = self._figures, self._observation
        figures.write_rest()
        pending = figures.pending(now_ns)
        figures.wait_where(pending, now_ns)
        snapshot = Snapshot(
            now_ns,
            self._topology,
            pending,
            figures.waiting_since_ns,
            figures.last_turn_ns,
            seen.cost_ns,
            seen.selectivity,
            seen.latency_ns,
            seen.latency_gradient,
            self._turn_limit,
            self._period_ns,
            min(1.0, seen.busy / self._workers),
        )
        self.plan, self._state = self._policy.plan(snapshot, self._state)
        self.spent_ns += time.thread_time_ns() - began_ns
        return pending

    def await_next(self, now_ns: int, took_ns: int) -> None:
        """An epoch has begun and it took so long to plan for it: when the next one begins."""
        self._period_ns = max(self._epoch_ns, min(took_ns * _PAUSE, self._epoch_ns * _MOST_EPOCHS))
        self.due_ns = now_ns + self._period_ns

    def priority(self, operator: int, pending: int, current: float, idle_ns: int) -> float:
        """What an operator has by what waits for it now."""
        return self._policy.refresh(
            operator, pending, self.plan, self._state, current=current, idle_ns=idle_ns
        )

    def limit(self, operator: int, now_ns: int) -> int:
        """How many events its turn may take if it begins now."""
        return self._policy.turn_limit(operator, now_ns, self.plan, self._state)

    @property
    def rule(self) -> Rule | None:
        """How priorities change until the next plan, where that can be said in numbers."""
        return self._policy.rule(self.plan, self._state)

    @property
    def patience_ns(self) -> int:
        """How long a source should wait from turn to turn."""
        return self._policy.patience_ns(self._state)
