"""Algorithm 1 of enjima: who is worth a turn."""

from __future__ import annotations

import math

import numpy as np

from penstock.scheduling.dispatch.dispatcher import priorities
from penstock.scheduling.dispatch.machine import OVERDUE
from penstock.scheduling.policy import Plan, PriorityOrder
from penstock.scheduling.topology import Topology
from tests.scheduling.snapshots import snapshot


def found(
    pending: list[int],
    idle: list[int],
    limit: int = 1_000,
    since: list[int] | None = None,
    overdue: float = math.inf,
    kind: str = "map",
) -> list[float]:
    """Priorities at 100 ns where 4 events, or 5 ns without a turn, are enough; by itself operator i has i."""
    count = len(pending)
    topology = Topology(((),) * count, (kind,) * count)
    last = [100 - time for time in idle]
    given = snapshot(pending, topology, now_ns=100, last_turn_ns=last, since_ns=since)
    potential, limits = np.arange(1.0, count + 1), np.full(count, limit)
    return priorities(Plan(potential, limits, PriorityOrder.FIXED, 4, 5.0, overdue), given).tolist()


def test_as_many_events_as_the_threshold_are_enough() -> None:
    assert found([3, 4, 5], [0, 0, 0]) == [0.0, 2.0, 3.0]


def test_few_events_are_enough_after_more_than_the_idle_threshold() -> None:
    assert found([1, 1, 1], [4, 5, 6]) == [0.0, 0.0, 3.0]


def test_without_events_nobody_is_eligible_however_long_idle() -> None:
    assert found([0, 0], [0, 90]) == [0.0, 0.0]


def test_events_that_fill_a_turn_are_enough() -> None:
    assert found([1, 2, 3], [0, 0, 0], limit=2) == [0.0, 2.0, 3.0]


def test_a_source_is_let_in_by_its_time_however_few_its_events() -> None:
    assert found([0, 1], [0, 0], kind="source") == [0.0, 2.0]


def test_who_is_overdue_goes_first_and_the_longest_before() -> None:
    since = [85, 84, 10, 0]
    assert found([1, 1, 1, 0], [100] * 4, since=since, overdue=10.0) == [1.0, OVERDUE + 1, OVERDUE + 75, 0.0]
