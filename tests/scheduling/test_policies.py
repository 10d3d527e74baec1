"""What holds for every policy: a pure function that gives turns to those with work and to nobody else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.query.errors import PenstockError
from penstock.scheduling.catalogue import POLICIES, policy_named
from penstock.scheduling.congestion import Congestion
from penstock.scheduling.dispatch.dispatcher import priorities
from penstock.scheduling.state_based import StateBased
from penstock.scheduling.thresholds import Adaptation
from tests.scheduling.snapshots import MS, Queue, chain, order, snapshot

names = st.sampled_from(sorted(POLICIES))
queues = st.lists(st.integers(0, 20), min_size=1, max_size=30)


def test_congestion_takes_the_longest_queue_first_and_of_equal_ones_the_one_downstream() -> None:
    queue = Queue(chain(4), Congestion(), snapshot([3, 9, 0, 3]))
    assert queue.turn(left=0) == 1
    queue.tell(2, 50)  # its queue has become the longest
    assert [queue.turn(left=0) for _ in range(3)] == [2, 3, 0]


def test_for_congestion_a_source_counts_as_half_a_turn_at_the_most() -> None:
    given = snapshot([10**9, 51, 40], turn_limit=100)
    plan, _ = Congestion().plan(given, None)
    assert priorities(plan, given).tolist() == [50.0, 51.0, 40.0]
    given = snapshot([7, 51, 40], turn_limit=100)
    assert priorities(plan, given).tolist() == [7.0, 51.0, 40.0]


@given(names, queues)
def test_everyone_with_work_is_eligible_in_the_end_and_nobody_else_ever(
    name: str, pending: list[int]
) -> None:
    policy = policy_named(name)
    one = snapshot(pending, now_ns=10_000 * MS)  # idle for longer than any threshold
    plan, _ = policy.plan(one, policy.initial_state(one.topology))
    assert sorted(order(plan, one)) == [i for i, count in enumerate(pending) if count]
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
    assert np.array_equal(first.potential, second.potential)
    assert np.array_equal(first.limit, second.limit)
    assert np.array_equal(priorities(first, one), priorities(second, one))
    assert np.array_equal(one.pending, before)


@given(names, queues)
def test_an_operator_without_work_sinks_to_zero(name: str, pending: list[int]) -> None:
    policy = policy_named(name)
    one = snapshot(pending, now_ns=MS)
    plan, _ = policy.plan(one, policy.initial_state(one.topology))
    later = replace(one, now_ns=10_000 * MS, pending=np.array([10_000, 0] * len(pending))[: len(pending)])
    assert (priorities(plan, later)[::2] > 0.0).all()
    assert (priorities(plan, later)[1::2] == 0.0).all()


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_graph_of_one_operator_works(name: str) -> None:
    policy = policy_named(name)
    queue = Queue(chain(1), policy, snapshot([4], chain(1), now_ns=MS * 2))
    assert [queue.turn() for _ in range(3)] == [0, 0, 0]


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
