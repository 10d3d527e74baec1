"""What a policy is: a pure function from a snapshot of the operators to their priorities for an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from penstock.scheduling.topology import Topology

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Turn(NamedTuple):
    """One operator's next execution: at most ``limit`` events."""

    operator: int
    limit: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The operators at one moment, by their number. Nobody changes its arrays.

    ``cost_ns``, ``selectivity``, ``latency_ns`` and ``latency_gradient`` change less often than the rest: as
    long as they stay the same, snapshots hold the very same arrays.
    """

    now_ns: int
    topology: Topology
    pending: Integers  # events and marks it could take now; 0: none, backpressured, finished
    waiting_since_ns: Integers  # when the oldest of them came; 0 if there is none
    last_turn_ns: Integers  # when its last turn ended
    cost_ns: Floats  # time per event taken, smoothed; above 0
    selectivity: Floats  # events out per event in, smoothed over a window's length; above 0; a sink's is 1
    latency_ns: Floats  # of each sink, smoothed; NaN for all others
    latency_gradient: Floats  # its change per second, relative to its mean, of each sink; NaN for all others
    turn_limit: int  # the most events that a turn may take by the run's settings
    epoch_ns: int  # the scheduler's period
    utilisation: float = 1.0  # the share of the workers' time spent in turns, of late


@dataclass(frozen=True, slots=True)
class Plan:
    """What holds for an epoch: who goes first, and with how many events at the most.

    ``potential`` is the priority of an operator from the moment it is eligible, also of those that are not
    yet.
    """

    priority: Floats  # higher first; 0 or less: not eligible
    limit: Integers
    potential: Floats
    deadline_ns: int = 0  # when the epoch ends, for policies whose turns should end with it


class Rule(NamedTuple):
    """What ``refresh`` and ``turn_limit`` say, as numbers, for those who have no time to call them.

    An operator has its potential as soon as ``least_events`` are pending, or they fill a turn, or there are
    some and it was idle for longer than ``idle_ns``. A turn that begins now takes what can be done by the
    plan's deadline, at least ``least_turn`` events, at most the plan's limit; with a cost of 0, the limit.
    """

    least_events: int
    idle_ns: Floats
    cost_ns: Floats
    least_turn: Integers


class Policy(Protocol):
    """Decides who goes first.

    ``state`` is whatever the policy wants to remember, starting with ``initial_state``; it is a value, not
    changed in place.
    """

    @property
    def name(self) -> str: ...

    def initial_state(self, topology: Topology) -> Any: ...

    def plan(self, snapshot: Snapshot, state: Any) -> tuple[Plan, Any]: ...

    def refresh(
        self, operator: int, pending: int, plan: Plan, state: Any, *, current: float = 0.0, idle_ns: int = 0
    ) -> float:
        """The priority of one operator within the epoch: when its turn ends, or when it has got events.

        ``current`` is the priority it has had; ``idle_ns`` the time since its last turn ended.
        """
        ...

    def turn_limit(self, operator: int, now_ns: int, plan: Plan, state: Any) -> int:
        """How many events its turn may take if it begins now."""
        ...

    def rule(self, plan: Plan, state: Any) -> Rule | None:
        """How priorities change until the next plan; None if only ``refresh`` can tell."""
        ...

    def patience_ns(self, state: Any) -> int:
        """How long a source may wait from turn to turn if it has few events."""
        ...


class EpochPolicy:
    """What most policies have in common: an operator with events is eligible, and its priority holds for the
    epoch."""

    #: Whether more events change the priority of an operator that is eligible already.
    follows_queues: ClassVar[bool] = False

    def refresh(
        self, operator: int, pending: int, plan: Plan, state: Any, *, current: float = 0.0, idle_ns: int = 0
    ) -> float:
        return float(plan.potential[operator]) if pending else 0.0

    def turn_limit(self, operator: int, now_ns: int, plan: Plan, state: Any) -> int:
        return int(plan.limit[operator])

    def rule(self, plan: Plan, state: Any) -> Rule | None:
        if type(self).refresh is not EpochPolicy.refresh:
            return None
        nothing = _zeros(len(plan.potential))
        return Rule(1, nothing, nothing, plan.limit)

    def patience_ns(self, state: Any) -> int:
        return 0


def plan_of(snapshot: Snapshot, potential: Floats) -> Plan:
    """Everyone with work is eligible, for a turn of any length that the settings allow."""
    priority = np.empty(len(potential))
    _where_pending(snapshot.pending, potential, priority)
    return Plan(priority, same_limit(len(potential), snapshot.turn_limit), potential)


@lru_cache(maxsize=64)
def same_limit(operators: int, limit: int) -> Integers:
    """The same limit for every operator; an array that nobody may change."""
    return np.full(operators, limit, np.int64)


@lru_cache(maxsize=64)
def _zeros(operators: int) -> Floats:
    return np.zeros(operators)


def by_rank(order: Integers) -> Floats:
    """Priorities that give this order of the operators: the first has the highest, the last has 1."""
    priority = np.empty(len(order))
    priority[order] = np.arange(len(order), 0, -1)
    return priority


# Compiled, like the other small loops of this package: over a few hundred operators one call costs a
# microsecond, where every NumPy expression would cost that again.
@numba.njit("void(int64[::1], float64[::1], float64[::1])", cache=True)
def _where_pending(pending: Integers, potential: Floats, priority: Floats) -> None:
    for operator in range(len(pending)):
        priority[operator] = potential[operator] if pending[operator] > 0 else 0.0
