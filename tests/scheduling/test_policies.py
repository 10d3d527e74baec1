"""Policies are pure: a snapshot in, turns out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.query.errors import PenstockError
from penstock.scheduling.catalogue import POLICIES, policy_named
from penstock.scheduling.congestion import Congestion
from penstock.scheduling.policy import Snapshot, Turn
from penstock.scheduling.round_robin import RoundRobin


def snapshot(*pending: int) -> Snapshot:
    return Snapshot(now_ns=0, pending=pending, turn_limit=100)


def test_round_robin_goes_on_after_the_last_operator() -> None:
    policy = RoundRobin()
    turns, state = policy.plan(snapshot(5, 0, 7, 1), policy.initial_state())
    assert turns == [Turn(0, 100), Turn(2, 100), Turn(3, 100)]
    turns, state = policy.plan(snapshot(5, 9, 0, 0), 1)
    assert turns == [Turn(1, 100), Turn(0, 100)]
    assert state == 1


def test_round_robin_keeps_its_place_when_nothing_waits() -> None:
    assert RoundRobin().plan(snapshot(0, 0), 1) == ([], 1)


def test_congestion_takes_the_longest_queue_first_and_of_equal_ones_the_one_downstream() -> None:
    turns, _ = Congestion().plan(snapshot(3, 9, 0, 3), None)
    assert [turn.operator for turn in turns] == [1, 3, 0]


@given(st.sampled_from(sorted(POLICIES)), st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_every_operator_with_work_gets_exactly_one_turn_and_no_other_does(
    name: str, pending: list[int]
) -> None:
    policy = policy_named(name)
    turns, _ = policy.plan(snapshot(*pending), policy.initial_state())
    assert sorted(turn.operator for turn in turns) == [i for i, count in enumerate(pending) if count]


def test_an_unknown_policy_names_those_there_are() -> None:
    with pytest.raises(PenstockError, match="unknown policy: 'best'; policies are congestion, round_robin"):
        policy_named("best")
