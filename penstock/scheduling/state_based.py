"""State-based: lowest output cost first, slower queries before others, and only turns that are worth it
(enjima 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.scheduling.gradient import mean_gradient, operator_weight
from penstock.scheduling.output_cost import output_cost
from penstock.scheduling.policy import Floats, Integers, Plan, PriorityOrder, Snapshot, busy
from penstock.scheduling.quantum import events_until
from penstock.scheduling.thresholds import Adaptation, Thresholds
from penstock.scheduling.topology import Topology

#: N_min where it is not given: a part of the longest turn, or what takes so long. A turn costs some ten
#: microseconds of its own, so that a shorter one is not worth it if there is more.
_LEAST_SHARE = 32
_LEAST_NS = 500_000

_PAPER = Adaptation()


class State(NamedTuple):
    """The thresholds and when to adapt them; and priorities with all that they were computed from."""

    thresholds: Thresholds
    adapt_at_ns: int
    cost_ns: Floats
    selectivity: Floats
    gradient: Floats
    priority: Floats
    limit: Integers  # N_proc for a turn that begins with the epoch
    least: Integers  # N_min
    beat_events: Floats | None = None  # what a beat brings to each operator
    least_events: Integers | int = 1  # the event threshold of each

    def holds_for(self, snapshot: Snapshot) -> bool:
        return (
            self.cost_ns is snapshot.cost_ns
            and self.selectivity is snapshot.selectivity
            and self.gradient is snapshot.latency_gradient
        )


@dataclass(frozen=True)
class StateBased:
    """P(i) = W / C̄_i for operators that are eligible; a turn ends with the epoch, by estimate.

    ``least_events`` is N_min; None is a 32nd of the longest turn, or half a millisecond.
    """

    adaptation: Adaptation = _PAPER
    adapt_every_ns: int = 500_000_000
    least_events: int | None = None
    name: str = "state"

    def initial_state(self, topology: Topology) -> State:
        nothing = np.empty(0)
        limit = np.empty(0, np.int64)
        return State(self.adaptation.initial(), 0, nothing, nothing, nothing, nothing, limit, limit)

    def plan(self, snapshot: Snapshot, state: State) -> tuple[Plan, State]:
        if not state.holds_for(snapshot):
            state = self._computed(snapshot, state)
        if snapshot.now_ns >= state.adapt_at_ns:
            state = self._adapted(snapshot, state)
        plan = Plan(
            state.priority,
            state.limit,
            PriorityOrder.FIXED,
            state.least_events,
            self.adaptation.idle_limit_ns(state.thresholds, busy(snapshot.utilisation)),
            self.adaptation.overdue_ns,
            state.cost_ns,
            state.least,
            snapshot.now_ns + snapshot.epoch_ns,
        )
        return plan, state

    def _computed(self, snapshot: Snapshot, state: State) -> State:
        cost_ns, selectivity = snapshot.cost_ns, snapshot.selectivity
        gradient = snapshot.latency_gradient
        weight = operator_weight(snapshot.topology, gradient)
        priority = weight / output_cost(snapshot.topology, cost_ns, selectivity)
        least = self._least(snapshot)
        limit = np.minimum(events_until(0, snapshot.epoch_ns, cost_ns, least), snapshot.turn_limit)
        arriving = snapshot.arriving_per_ns
        beat_events = None if arriving is None else arriving * snapshot.beat_ns
        return state._replace(
            beat_events=beat_events,
            least_events=self.adaptation.least_events(
                state.thresholds, beat_events, busy(snapshot.utilisation)
            ),
            cost_ns=cost_ns,
            selectivity=selectivity,
            gradient=gradient,
            priority=priority,
            limit=limit,
            least=least,
        )

    def _least(self, snapshot: Snapshot) -> Integers:
        if self.least_events is not None:
            return np.full(len(snapshot.cost_ns), self.least_events, np.int64)
        longest = snapshot.turn_limit
        return np.clip(_LEAST_NS / snapshot.cost_ns, max(1, longest // _LEAST_SHARE), longest).astype(
            np.int64
        )

    def _adapted(self, snapshot: Snapshot, state: State) -> State:
        adapt_at_ns = snapshot.now_ns + self.adapt_every_ns
        if state.adapt_at_ns == 0:  # the first look: nothing is known of the gradient
            return state._replace(adapt_at_ns=adapt_at_ns)
        gradient = mean_gradient(snapshot.latency_gradient)
        thresholds = self.adaptation.adapt(state.thresholds, gradient)
        share = busy(snapshot.utilisation)
        least_events = self.adaptation.least_events(thresholds, state.beat_events, share)
        return state._replace(adapt_at_ns=adapt_at_ns, thresholds=thresholds, least_events=least_events)
