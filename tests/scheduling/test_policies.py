"""What holds for every policy: a pure function that gives turns to those with work and to nobody else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.query.errors import PenstockError
from penstock.scheduling.catalogue import POLICIES, policy_named
from penstock.scheduling.congestion import Congestion
from penstock.scheduling.state_based import StateBased
from penstock.scheduling.thresholds import Adaptation
from tests.scheduling.snapshots import MS, chain, order, snapshot

names = st.sampled_from(sorted(POLICIES))
queues = st.lists(st.integers(0, 20), min_size=1, max_size=30)


def test_congestion_takes_the_longest_queue_first_and_of_equal_ones_the_one_downstream() -> None:
    policy = Congestion()
    plan, state = policy.plan(snapshot([3, 9, 0, 3]), policy.initial_state(chain(4)))
    assert order(plan) == [1, 3, 0]
    assert policy.refresh(2, 50, plan, state) > plan.priority[1]  # its queue has become the longest
    assert policy.refresh(2, 0, plan, state) == 0.0


def test_for_congestion_a_source_counts_as_half_a_turn_at_the_most() -> None:
    policy = Congestion()
    plan, state = policy.plan(snapshot([10**9, 51, 40], turn_limit=100), policy.initial_state(chain(3)))
    assert order(plan) == [1, 0, 2]
    assert policy.refresh(0, 10**9, plan, state) == 50.0
    assert policy.refresh(0, 7, plan, state) == 7.0


@given(names, queues)
def test_everyone_with_work_is_eligible_in_the_end_and_nobody_else_ever(
    name: str, pending: list[int]
) -> None:
    policy = policy_named(name)
    one = snapshot(pending, now_ns=10_000 * MS)  # idle for longer than any threshold
    plan, _ = policy.plan(one, policy.initial_state(one.topology))
    assert sorted(order(plan)) == [i for i, count in enumerate(pending) if count]
    assert (plan.limit >= 1).all()
    assert (plan.limit <= one.turn_limit).all()
    assert (plan.potential[one.pending > 0] > 0).all()


@given(names, queues, st.integers(0, 40))
def test_a_policy_is_a_function_of_its_arguments(name: str, pending: list[int], now_ms: int) -> None:
    policy = policy_named(name)
    one = snapshot(pending, now_ns=now_ms * MS, last_turn_ns=list(range(len(pending))))
    state = policy.initial_state(one.topology)
    before = one.pending.copy()
    first, second = policy.plan(one, state)[0], policy.plan(one, state)[0]
    assert np.array_equal(first.priority, second.priority)
    assert np.array_equal(first.limit, second.limit)
    assert np.array_equal(one.pending, before)


@given(names, queues)
def test_an_operator_without_work_sinks_to_zero(name: str, pending: list[int]) -> None:
    policy = policy_named(name)
    one = snapshot(pending, now_ns=MS)
    plan, state = policy.plan(one, policy.initial_state(one.topology))
    for operator in range(len(pending)):
        assert policy.refresh(operator, 0, plan, state, current=1.0, idle_ns=10_000 * MS) == 0.0
        assert policy.refresh(operator, 10_000, plan, state, idle_ns=10_000 * MS) > 0.0


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_graph_of_one_operator_works(name: str) -> None:
    policy = policy_named(name)
    plan, state = policy.plan(snapshot([4], chain(1), now_ns=MS * 2), policy.initial_state(chain(1)))
    assert order(plan) == [0]
    assert policy.turn_limit(0, MS * 2, plan, state) >= 1


def test_an_unknown_policy_names_those_there_are() -> None:
    known = (
        "congestion, first_come, highest_rate, min_cost, min_latency, min_memory, random, round_robin, state"
    )
    with pytest.raises(PenstockError, match=f"unknown policy: 'best'; policies are {known}"):
        policy_named("best")


def test_a_policy_that_is_given_stays_and_thresholds_go_to_the_one_that_has_them() -> None:
    own = Congestion()
    assert policy_named(own) is own
    adaptation = Adaptation.for_block(768, 10**6)
    assert policy_named("state", adaptation) == StateBased(adaptation)
    assert policy_named("congestion", adaptation) == Congestion()
