"""Algorithm 1 of enjima, for all operators and for one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.scheduling.eligibility import OVERDUE, eligible_priority, is_eligible
from tests.scheduling.snapshots import snapshot


def priorities(pending: list[int], idle: list[int], limit: int = 1_000) -> list[float]:
    one = snapshot(pending, now_ns=100, last_turn_ns=[100 - time for time in idle])
    limits, idle_ns = np.full(len(pending), limit), np.full(len(pending), 5.0)
    return eligible_priority(one, np.arange(1.0, len(pending) + 1), limits, 4.0, idle_ns).tolist()


def test_as_many_events_as_the_threshold_are_enough() -> None:
    assert priorities([3, 4, 5], [0, 0, 0]) == [0.0, 2.0, 3.0]


def test_few_events_are_enough_after_more_than_the_idle_threshold() -> None:
    assert priorities([1, 1, 1], [4, 5, 6]) == [0.0, 0.0, 3.0]


def test_without_events_nobody_is_eligible_however_long_idle() -> None:
    assert priorities([0, 0], [0, 90]) == [0.0, 0.0]


def test_events_that_fill_a_turn_are_enough() -> None:
    assert priorities([1, 2, 3], [0, 0, 0], limit=2) == [0.0, 2.0, 3.0]


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9))
def test_the_answer_for_one_is_the_answer_for_all(pending: int, idle: int, limit: int) -> None:
    assert is_eligible(pending, idle, limit, 4.0, 5.0) == (priorities([pending], [idle], limit) == [1.0])


def test_every_operator_has_an_idle_threshold_of_its_own() -> None:
    one = snapshot([1, 1], now_ns=100, last_turn_ns=[94, 94])
    assert eligible_priority(
        one, np.array([1.0, 2.0]), np.array([9, 9]), 4.0, np.array([5.0, 50.0])
    ).tolist() == [1.0, 0.0]


def test_who_is_overdue_goes_first_and_the_longest_before() -> None:
    one = snapshot([1, 1, 1, 0], now_ns=100, last_turn_ns=[0, 0, 0, 0], since_ns=[85, 84, 10, 1])
    idle_ns, limits = np.full(4, 5.0), np.full(4, 9)
    found = eligible_priority(one, np.array([7.0, 6.0, 5.0, 4.0]), limits, 4.0, idle_ns, overdue_ns=10.0)
    assert found.tolist() == [7.0, OVERDUE + 1.0, OVERDUE + 75.0, 0.0]
