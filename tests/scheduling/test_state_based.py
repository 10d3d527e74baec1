"""The state-based policy on enjima's worked example (table 1), and its turns, weights and thresholds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.scheduling.dispatch.dispatcher import priorities
from penstock.scheduling.min_latency import MinLatency
from penstock.scheduling.policy import Policy
from penstock.scheduling.state_based import State, StateBased
from penstock.scheduling.thresholds import Adaptation, ThresholdRange
from tests.scheduling.snapshots import (
    EXAMPLE,
    EXAMPLE_COST_NS,
    EXAMPLE_PENDING,
    MS,
    A,
    B,
    C,
    D,
    E,
    example,
    order,
    snapshot,
)

#: Thresholds as in the example: 4 events and 5 ms, that stay as they are.
STABLE = StateBased(
    Adaptation(ThresholdRange(4.0, 5.0, 0.0), ThresholdRange(5.0 * MS, 6.0 * MS, 0.0)), least_events=1
)


def decisions(policy: Policy, count: int) -> list[int]:
    """Runs one worker over the example: each operator takes what waits for it, at most a block of 4.

    C and D emit one event in a turn of four, as the text assumes; B's events go to both of them.
    """
    pending, last_ns, now_ns, made = list(EXAMPLE_PENDING), [0] * 5, 0, []
    state = policy.initial_state(EXAMPLE)
    for _ in range(count):
        given = example(pending, now_ns=now_ns, last_turn_ns=last_ns)
        plan, state = policy.plan(given, state)
        chosen = order(plan, given)[0]
        made.append(chosen)
        taken = min(pending[chosen], 4)
        pending[chosen] -= taken
        now_ns += int(taken * EXAMPLE_COST_NS[chosen])
        last_ns[chosen] = now_ns
        for reader in EXAMPLE.children[chosen]:
            pending[reader] += taken // 4 if chosen in (C, D) else taken
    return made


def test_the_worked_example_takes_five_decisions() -> None:
    # By equation 2 the output costs are E 0.5, D 2.17, C 2.5, B 5.83, A 7.5, so D goes before C; the paper's
    # text has C before D. E has too few events until both have run; B is let in by its idle time of 6 ms;
    # then C and D, with 2 events each and idle for 3 and 5 ms, are not eligible, and A comes last.
    assert decisions(STABLE, 5) == [D, C, E, B, A]


def test_min_latency_needs_more_decisions_for_the_same_example() -> None:
    assert decisions(MinLatency(), 5) == [E, D, E, C, E]  # E is called for every event that comes


def test_at_first_the_operators_below_the_event_threshold_have_priority_zero() -> None:
    plan, _ = STABLE.plan(example(), STABLE.initial_state(EXAMPLE))
    assert order(plan, example()) == [D, C, A]
    assert priorities(plan, example())[[B, E]].tolist() == [0.0, 0.0]
    assert plan.potential == pytest.approx(1 / (np.array([7.5, 5.8333, 2.5, 2.1667, 0.5]) * MS), rel=1e-4)


def test_a_worker_that_returns_an_operator_finds_it_eligible_or_not() -> None:
    plan, _ = STABLE.plan(example(), STABLE.initial_state(EXAMPLE))

    def of_sink(pending: int, now_ns: int = 0) -> float:
        return float(priorities(plan, example([1, 1, 1, 1, pending], now_ns=now_ns))[E])

    assert of_sink(4) == plan.potential[E]
    assert of_sink(3) == 0.0
    assert of_sink(3, 6 * MS) == plan.potential[E]
    assert of_sink(0, 6 * MS) == 0.0


def test_a_beat_s_worth_of_events_is_worth_a_turn_of_its_operator() -> None:
    policy = StateBased(replace(STABLE.adaptation, events=ThresholdRange(400.0, 500.0, 0.0), of_beat=0.5))
    of = replace(example([0, 9, 9, 10, 0]), arriving_per_ns=np.full(5, 2e-6), beat_ns=10 * MS)
    plan, state = policy.plan(of, policy.initial_state(EXAMPLE))
    assert order(plan, of) == [D]  # a beat brings 20 events
    plan, _ = policy.plan(replace(of, cost_ns=of.cost_ns.copy(), beat_ns=5 * MS), state)
    assert order(plan, of) == [D, C, B]


def test_a_query_that_becomes_slower_goes_first() -> None:
    two = snapshot([9, 9], gradient=[-0.5, 0.5], turn_limit=9)
    plan, _ = STABLE.plan(two, STABLE.initial_state(two.topology))
    assert plan.potential == pytest.approx([1.05 / 2, 1.05 / 1])  # the chain's source works for the sink too


def test_a_turn_is_as_long_as_the_epoch_and_ends_with_it() -> None:
    policy = StateBased(least_events=20)
    given = snapshot([5_000, 5_000], now_ns=7 * MS, cost_ns=[100.0, 20_000.0], turn_limit=8_000)
    plan, _ = policy.plan(given, policy.initial_state(given.topology))
    assert plan.limit.tolist() == [8_000, 50]  # 1 ms at 100 ns is 10,000, above the limit of the settings
    assert plan.deadline_ns == 8 * MS
    assert plan.cost_ns is given.cost_ns
    assert plan.least_turn is not None
    assert plan.least_turn.tolist() == [20, 20]  # N_min, where the epoch is over


def test_thresholds_are_adapted_once_a_period_and_are_part_of_the_state() -> None:
    policy = StateBased(adapt_every_ns=10 * MS)
    first = policy.initial_state(EXAMPLE)

    def later(now_ms: int, gradient: float, state: State) -> State:
        given = example(now_ns=now_ms * MS, gradient=[np.nan] * 4 + [gradient])
        return policy.plan(given, state)[1]

    started = later(1, 0.5, first)
    assert started.thresholds == first.thresholds  # the first look knows nothing of the gradient yet
    assert later(10, 0.5, started).thresholds == first.thresholds  # not yet
    changed = later(11, 0.5, started)
    assert changed.thresholds.events == 1_500.0
    assert later(21, 0.8, changed).thresholds.events == 1_000.0  # it hurt
    assert started.thresholds.events == 1_000.0  # a state is a value


def test_priorities_are_computed_anew_when_the_measured_figures_change() -> None:
    plan, state = STABLE.plan(example(), STABLE.initial_state(EXAMPLE))
    slower = example(cost_ns=[2 * cost for cost in EXAMPLE_COST_NS])
    again, _ = STABLE.plan(slower, state)
    assert again.potential == pytest.approx(plan.potential / 2)
