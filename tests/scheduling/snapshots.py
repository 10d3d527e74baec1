"""Snapshots by hand, for tests of policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.scheduling.dispatch.dispatcher import Dispatcher, priorities
from penstock.scheduling.dispatch.rules import Rules
from penstock.scheduling.observation import Observation
from penstock.scheduling.policy import Plan, Policy, Snapshot
from penstock.scheduling.topology import Topology

MS = 1_000_000

#: The graph of enjima's figure 4: A → B → {C, D} → E.
EXAMPLE = Topology(((1,), (2, 3), (4,), (4,), ()), ("source", "map", "filter", "filter", "sink"))
A, B, C, D, E = range(5)
#: Its table 1, in ms and events.
EXAMPLE_COST_NS = (0.5 * MS,) * 5
EXAMPLE_SELECTIVITY = (1.0, 1.0, 0.25, 0.3, 1.0)
EXAMPLE_PENDING = (4, 2, 4, 4, 2)


def chain(length: int) -> Topology:
    """A source, a sink, and what is between them, one after the other."""
    children = (*((i + 1,) for i in range(length - 1)), ())
    return Topology(children, ("source", *("map",) * (length - 2), "sink"))


def snapshot(
    pending: Sequence[int],
    topology: Topology | None = None,
    *,
    now_ns: int = 0,
    since_ns: Sequence[int] | None = None,
    last_turn_ns: Sequence[int] | None = None,
    cost_ns: Sequence[float] | None = None,
    selectivity: Sequence[float] | None = None,
    gradient: Sequence[float] | None = None,
    turn_limit: int = 100,
    epoch_ns: int = MS,
) -> Snapshot:
    count = len(pending)

    def integers(values: Sequence[int] | None) -> Any:
        return np.array([0] * count if values is None else values, np.int64)

    def floats(values: Sequence[float] | None, default: float) -> Any:
        return np.array([default] * count if values is None else values, float)

    return Snapshot(
        now_ns=now_ns,
        topology=topology or chain(count),
        pending=integers(pending),
        waiting_since_ns=integers(since_ns),
        last_turn_ns=integers(last_turn_ns),
        cost_ns=floats(cost_ns, 1.0),
        selectivity=floats(selectivity, 1.0),
        latency_ns=floats(None, np.nan),
        latency_gradient=floats(gradient, np.nan),
        turn_limit=turn_limit,
        epoch_ns=epoch_ns,
    )


def example(pending: Sequence[int] = EXAMPLE_PENDING, **more: Any) -> Snapshot:
    """The state of enjima's worked example, with an epoch long enough for any turn in it."""
    given = {"cost_ns": EXAMPLE_COST_NS, "selectivity": EXAMPLE_SELECTIVITY, "epoch_ns": 50 * MS}
    return snapshot(pending, EXAMPLE, **{**given, **more})


def order(plan: Plan, given: Snapshot) -> list[int]:
    """The eligible operators as the dispatcher gives them out by this plan."""
    priority = priorities(plan, given)
    chosen = [number for number, value in enumerate(priority) if value > 0]
    return sorted(chosen, key=lambda number: (-priority[number], -number))


class Queue:
    """The dispatcher without any rule of its own: what the policy makes of operators that have more."""

    def __init__(self, topology: Topology, policy: Policy, given: Snapshot) -> None:
        self._dispatcher = Dispatcher(topology, policy, given.turn_limit, given.epoch_ns, 1, Rules.none())
        self._now_ns, self._pending = given.now_ns + 1, given.pending.tolist()
        board = self._dispatcher.board
        board.columns["pending"] = given.pending
        board.columns["since_ns"] = given.waiting_since_ns
        board.columns["last_turn_ns"] = given.last_turn_ns
        count = len(given.pending)
        seen = Observation(topology, 1, np.zeros(count), np.ones(count, bool))
        self._dispatcher.plan(given.now_ns, seen)

    def take(self) -> int:
        """Who goes first now; it keeps its turn."""
        assert self._dispatcher.exchange(0, self._now_ns)
        return int(self._dispatcher.board.given[0].operator)

    def turn(self, left: int | None = None) -> int:
        """Who goes first now, and comes back with as much as it had, or with this."""
        operator, board = self.take(), self._dispatcher.board
        board.returned[0] = operator
        board.operators[operator].seen = self._pending[operator] if left is None else left
        self._now_ns += 1
        self._dispatcher.exchange(1, self._now_ns, 0)
        return operator

    def tell(self, operator: int, pending: int) -> None:
        """So much waits for it now."""
        self._dispatcher.tell(operator, pending, self._now_ns)
