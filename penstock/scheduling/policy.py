"""What a policy is: a pure function from a snapshot of the operators to their priorities for a while."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

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
    arriving_per_ns: Floats | None = None  # events that each has taken of late, if that is known
    beat_ns: int = 0  # from one time at which sources are read to the next


_BUSY = 0.75  # of workers that have no time left: the rest goes into waiting for each other


def busy(utilisation: float) -> float:
    """How near workers are to having no time left: 1 is there.

    >>> busy(0.375), busy(0.9)
    (0.5, 1.0)
    """
    return min(1.0, utilisation / _BUSY)


class PriorityOrder(IntEnum):
    """How the priority of an operator that is eligible follows from its potential, until the next plan."""

    FIXED = 0  # it is the potential
    LENGTH = 1  # what waits for it; of a source, half a turn at the most
    AGE = 2  # how long what waits for it had waited when the plan was made
    ROUND = 3  # the potential; after a turn, behind all that have had fewer
    DRAW = 4  # the potential; after a turn, drawn anew


@dataclass(frozen=True, slots=True)
class Plan:
    """What holds until the next plan, in numbers: for the dispatcher, which has no time to call a policy.

    An operator is eligible as soon as ``least_events`` are pending, or they fill a turn, or there are some
    and it was idle for longer than ``idle_ns``; a source, when its time has come. One that has waited for
    ``overdue_ns`` more than ``idle_ns`` goes before all others. A turn takes what can be done by the deadline
    at this cost, at least ``least_turn`` events, and at most the limit.
    """

    potential: Floats  # the priority of an operator from the moment it is eligible; above 0
    limit: Integers
    order: PriorityOrder = PriorityOrder.FIXED
    least_events: int | Integers = 1
    idle_ns: float = 0.0
    overdue_ns: float = math.inf
    cost_ns: Floats | None = None  # per event; None: a turn need not end with the epoch
    least_turn: Integers | None = None
    deadline_ns: int = 0


class Policy(Protocol):
    """Decides who goes first.

    ``state`` is whatever the policy wants to remember, starting with ``initial_state``; it is a value, not
    changed in place.
    """

    @property
    def name(self) -> str: ...

    def initial_state(self, topology: Topology) -> Any: ...

    def plan(self, snapshot: Snapshot, state: Any) -> tuple[Plan, Any]: ...


def plan_of(snapshot: Snapshot, potential: Floats, order: PriorityOrder = PriorityOrder.FIXED) -> Plan:
    """Everyone with work is eligible, for a turn of any length that the settings allow."""
    return Plan(potential, same_limit(len(potential), snapshot.turn_limit), order)


@lru_cache(maxsize=64)
def same_limit(operators: int, limit: int) -> Integers:
    """The same limit for every operator; an array that nobody may change."""
    return np.full(operators, limit, np.int64)


@lru_cache(maxsize=64)
def same_priority(operators: int) -> Floats:
    """Where only what waits decides; an array that nobody may change."""
    return np.ones(operators)


def by_rank(order: Integers) -> Floats:
    """Priorities that give this order of the operators: the first has the highest, the last has 1."""
    priority = np.empty(len(order))
    priority[order] = np.arange(len(order), 0, -1)
    return priority
