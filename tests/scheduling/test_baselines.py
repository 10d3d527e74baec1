"""The policies that state-based and congestion-aware scheduling are compared with, each by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.scheduling.first_come import FirstCome
from penstock.scheduling.highest_rate import HighestRate, output_rate
from penstock.scheduling.min_cost import MinCost, post_order
from penstock.scheduling.min_latency import MinLatency
from penstock.scheduling.min_memory import MinMemory, envelope_slopes
from penstock.scheduling.random_order import RandomOrder
from penstock.scheduling.round_robin import RoundRobin
from penstock.scheduling.topology import Topology
from tests.scheduling.snapshots import (
    EXAMPLE,
    EXAMPLE_SELECTIVITY,
    A,
    B,
    C,
    D,
    E,
    Queue,
    chain,
    example,
    order,
    snapshot,
)


def test_first_come_takes_who_has_waited_longest_and_sends_it_to_the_end_of_the_line() -> None:
    policy = FirstCome()
    given = snapshot([1, 1, 0, 1], now_ns=100, since_ns=[90, 30, 0, 60])
    plan, _ = policy.plan(given, None)
    assert order(plan, given) == [1, 3, 0]
    later = replace(given, waiting_since_ns=np.array([90, 130, 0, 60]))  # the second has had a turn
    queue = Queue(given.topology, policy, later)
    assert [queue.take() for _ in range(3)] == [3, 0, 1]


def test_round_robin_goes_on_after_the_operator_that_ran_last() -> None:
    policy = RoundRobin()
    state = policy.initial_state(chain(4))
    given = snapshot([5, 0, 7, 1])
    assert order(policy.plan(given, state)[0], given) == [0, 2, 3]
    ran = snapshot([5, 9, 7, 1], last_turn_ns=[3, 8, 2, 0])
    assert order(policy.plan(ran, state)[0], ran) == [2, 3, 0, 1]


def test_round_robin_gives_nobody_a_second_turn_before_all_had_one() -> None:
    queue = Queue(chain(3), RoundRobin(), snapshot([9, 9, 9]))
    assert [queue.turn() for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_min_cost_goes_in_post_order_from_the_sinks() -> None:
    # two sources into a union (2), a filter (3) and two sinks; the tree of sink 4 first, then what is new
    # in that of sink 5
    graph = Topology(
        ((2,), (2,), (3, 5), (4,), (), ()), ("source", "source", "union", "filter", "sink", "sink")
    )
    assert post_order(graph) == (0, 1, 2, 3, 4, 5)
    assert post_order(EXAMPLE) == (A, B, C, D, E)
    # a source that only the second sink reads comes after the whole tree of the first
    apart = Topology(((2,), (3,), (), ()), ("source", "source", "sink", "sink"))
    assert post_order(apart) == (0, 2, 1, 3)
    policy = MinCost()
    state = policy.initial_state(apart)
    given = snapshot([1, 1, 1, 1], apart)
    assert order(policy.plan(given, state)[0], given) == [0, 2, 1, 3]
    went = snapshot([1, 1, 1, 1], apart, last_turn_ns=[1, 0, 2, 0])
    assert order(policy.plan(went, state)[0], went) == [1, 3, 0, 2]


def test_min_latency_takes_the_lowest_output_cost() -> None:
    policy = MinLatency()
    plan, _ = policy.plan(example(), policy.initial_state(EXAMPLE))
    assert order(plan, example()) == [E, D, C, B, A]


def test_highest_rate_divides_what_comes_out_by_all_the_time_it_takes() -> None:
    # a chain of 2 ns at 0.5, 3 ns at 0.5, a sink of 4 ns:
    # G: 4; 3 + 0.5 · 4 = 5; 2 + 0.5 · 5 = 4.5. O: 1; 0.5; 0.25.
    found = output_rate(chain(3), np.array([2.0, 3.0, 4.0]), np.array([0.5, 0.5, 1.0]))
    assert found == pytest.approx([0.25 / 4.5, 0.5 / 5, 1 / 4])


def test_highest_rate_counts_every_way_that_events_take() -> None:
    # E: O 1, G 0.5. C: O 0.25, G 0.5 + 0.125. D: O 0.3, G 0.5 + 0.15. B: O 0.55, G 0.5 + 0.625 + 0.65.
    found = output_rate(EXAMPLE, np.full(5, 0.5), np.array(EXAMPLE_SELECTIVITY))
    assert found == pytest.approx([0.55 / 2.275, 0.55 / 1.775, 0.25 / 0.625, 0.3 / 0.65, 1 / 0.5])
    policy = HighestRate()
    assert order(policy.plan(example(), policy.initial_state(EXAMPLE))[0], example()) == [E, D, C, B, A]


def test_the_lower_envelope_of_a_progress_chart() -> None:
    # Babcock's example has an operator that filters little before one that filters much. Here: 0 keeps 0.9
    # in 1 ns, 1 keeps 0.1 of those in 1 ns (0.9 ns an event), 2 lets it out in 10 ns (0.09 · 10 = 0.9 ns).
    # Chart: (0, 1), (1, 0.9), (1.9, 0.09), (2.8, 0). From (0, 1): slopes 0.1, 0.91 / 1.9 = 0.479, 1 / 2.8 =
    # 0.357: the first segment ends after operator 1. From (1.9, 0.09): 0.09 / 0.9 = 0.1.
    found = envelope_slopes(chain(3), np.array([1.0, 1.0, 10.0]), np.array([0.9, 0.1, 1.0]))
    assert found == pytest.approx([0.91 / 1.9, 0.91 / 1.9, 0.1])


def test_an_operator_on_several_paths_takes_its_steepest_slope() -> None:
    # one source to two sinks: paths (1, 0.5) then down in 0.5 · 1 ns, and in 0.5 · 9 ns
    graph = Topology(((1, 2), (), ()), ("source", "sink", "sink"))
    found = envelope_slopes(graph, np.array([1.0, 1.0, 9.0]), np.array([0.5, 1.0, 1.0]))
    # path 0-1: slopes 0.5 and 1 / 1.5: one segment. Path 0-2: 0.5 and 1 / 5.5: two, 0.5 and 0.5 / 4.5
    assert found == pytest.approx([1 / 1.5, 1 / 1.5, 0.5 / 4.5])


def test_min_memory_goes_down_the_steepest_slope_from_its_start() -> None:
    policy = MinMemory()
    given = snapshot([1, 1, 1], cost_ns=[1.0, 1.0, 10.0], selectivity=[0.9, 0.1, 1.0])
    assert order(policy.plan(given, policy.initial_state(given.topology))[0], given) == [0, 1, 2]
    # where events become more, the slope is negative, and the priority still is not
    more = snapshot([1, 1], cost_ns=[1.0, 1.0], selectivity=[5.0, 1.0])
    assert (policy.plan(more, policy.initial_state(more.topology))[0].potential > 0).all()


def test_random_is_the_same_for_the_same_seed_and_another_one_each_time() -> None:
    given = snapshot([1] * 20)

    def drawn(seed: int, plans: int) -> list[list[int]]:
        policy, found = RandomOrder(seed), []
        state = policy.initial_state(given.topology)
        for _ in range(plans):
            plan, state = policy.plan(given, state)
            found.append(order(plan, given))
        return found

    assert drawn(1, 3) == drawn(1, 3)
    assert drawn(1, 3) != drawn(2, 3)
    first, second, third = drawn(1, 3)
    assert first != second != third != first


def test_random_draws_anew_when_a_turn_ends() -> None:
    queue = Queue(chain(6), RandomOrder(), snapshot([9] * 6))
    drawn = [queue.turn() for _ in range(60)]
    assert len(set(drawn)) > 2
    assert len({tuple(drawn[place : place + 6]) for place in range(0, 60, 6)}) > 5  # no round is like another
