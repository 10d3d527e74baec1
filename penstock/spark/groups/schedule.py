"""Which group's batch begins next, by the policies that order operators. Pure but for what it remembers.

A group is an operator here: what waits for it is its source lag, in rows, and its cost is the measured time
per row of its batches.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from penstock.scheduling.catalogue import policy_named
from penstock.scheduling.dispatch.dispatcher import priorities
from penstock.scheduling.policy import Policy, Snapshot
from penstock.scheduling.topology import Topology

_SMOOTHING = 0.3  # of the newest batch in what a group is known by
_EPOCH_NS = 1_000_000_000
_TURN_ROWS = 1 << 40  # a batch is not cut here


@dataclass
class _Measured:
    """What is known of one group."""

    cost_ns: float = 1.0  # per row
    batch_ns: float = 1.0
    taken_ns: int = 0  # when its newest batch was planned: what came later is its lag
    ended_ns: int = 0
    waiting_since_ns: int = 0
    passed_over: int = 0


@dataclass
class GroupSchedule:
    """Chooses among groups that wait; the caller keeps the time."""

    groups: int
    policy: str | Policy = "highest_rate"
    rows_per_s: float = 0.0  # that come to the sources; all groups read the same
    _known: list[_Measured] = field(init=False)

    def __post_init__(self) -> None:
        self._policy = policy_named(self.policy)
        # Each group is its own end: nobody reads what it emits.
        self._topology = Topology(((),) * self.groups, ("sink",) * self.groups)
        self._state = self._policy.initial_state(self._topology)
        self._known = [_Measured() for _ in range(self.groups)]

    def arrived(self, group: int, now_ns: int) -> None:
        """A batch of this group is planned and waits for its turn."""
        self._known[group].waiting_since_ns = now_ns

    def ended(self, group: int, planned_ns: int, began_ns: int, now_ns: int, rows: int) -> None:
        """A batch of this group has run; it was planned at ``planned_ns`` and read ``rows``."""
        known = self._known[group]
        if rows > 0:
            if known.taken_ns and planned_ns > known.taken_ns:
                rate = rows * 1e9 / (planned_ns - known.taken_ns)
                self.rows_per_s += _SMOOTHING * (rate - self.rows_per_s) if self.rows_per_s else rate
            cost_ns = max(now_ns - began_ns, 1) / rows
            known.cost_ns += (_SMOOTHING if known.ended_ns else 1.0) * (cost_ns - known.cost_ns)
        known.batch_ns += (_SMOOTHING if known.ended_ns else 1.0) * (now_ns - began_ns - known.batch_ns)
        known.taken_ns, known.ended_ns = planned_ns, now_ns

    def lag(self, group: int, now_ns: int) -> int:
        """Rows that came since its newest batch was planned, by the measured rate; at least 1."""
        return max(1, int(self.rows_per_s * (now_ns - self._known[group].taken_ns) / 1e9))

    def choose(self, waiting: Collection[int], now_ns: int) -> int:
        """The group of ``waiting`` whose batch begins now.

        The policy decides, but nobody waits for ever: a group that was passed over as often as there are
        groups goes first. Where the policy finds none eligible, the one that waits longest goes.
        """
        overdue = [group for group in waiting if self._known[group].passed_over >= self.groups]
        snapshot = self._snapshot(waiting, now_ns)
        plan, self._state = self._policy.plan(snapshot, self._state)
        priority = priorities(plan, snapshot)
        chosen = min(
            overdue or waiting,
            key=lambda group: (
                -float(priority[group]),
                self._known[group].waiting_since_ns,
                group,
            ),
        )
        for group in waiting:
            self._known[group].passed_over = 0 if group == chosen else self._known[group].passed_over + 1
        return chosen

    def _snapshot(self, waiting: Collection[int], now_ns: int) -> Snapshot:
        count = self.groups
        pending, since = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for group in waiting:
            pending[group] = self.lag(group, now_ns)
            since[group] = self._known[group].waiting_since_ns
        return Snapshot(
            now_ns=now_ns,
            topology=self._topology,
            pending=pending,
            waiting_since_ns=since,
            last_turn_ns=np.array([known.ended_ns for known in self._known], np.int64),
            cost_ns=np.array([known.cost_ns for known in self._known]),
            selectivity=np.ones(count),
            latency_ns=np.array([known.batch_ns for known in self._known]),
            latency_gradient=np.zeros(count),
            turn_limit=_TURN_ROWS,
            epoch_ns=_EPOCH_NS,
        )
