"""Equation 29 by hand, and what holds for every plan."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.query.errors import PenstockError
from penstock.routing.imbalance import load_imbalance
from penstock.routing.load import task_loads
from penstock.routing.rebalancer import Rebalancer
from penstock.routing.route import Move, Route

EXACT = Rebalancer(chi=0.2, settle=1.0)  # equation 29 and no more


def test_equation_29_by_hand() -> None:
    # Loads 12 and 4, mean 8: the first must come down to 1.2 · 8 = 9.6, so at least 2.4 must move.
    # Ascending: 1, then 2 make 3 ≥ 2.4; without the 1 it would be 2 < 2.4, without the 2 it would be 1.
    plan = EXACT.plan((0, 0, 0, 1), 2, (9.0, 2.0, 1.0, 4.0))
    assert plan.moves == (Move(1, 0, 1), Move(2, 0, 1))
    assert plan.route == (0, 1, 1, 1)
    assert plan.lit_before == pytest.approx(0.5)
    assert plan.lit_expected == pytest.approx(1 / 8)


def test_the_set_is_the_smallest_sufficient_one() -> None:
    # 16 and 4, mean 10: 4 must move. 1 + 2 + 3 would do, and so would 1 + 3, the last one left out first.
    plan = EXACT.plan((0, 0, 0, 0, 1), 2, (1.0, 2.0, 3.0, 10.0, 4.0))
    assert {move.partition for move in plan.moves} == {0, 2} or {move.partition for move in plan.moves} == {
        1,
        2,
    }
    given_away = sum((1.0, 2.0, 3.0, 10.0, 4.0)[move.partition] for move in plan.moves)
    assert all(given_away - (1.0, 2.0, 3.0, 10.0, 4.0)[move.partition] < 4 for move in plan.moves)


def test_partitions_go_to_the_emptiest_tasks() -> None:
    # 12, 2, 1, mean 5: the first must give 6, that is 6 of its 2s, the emptiest first each time
    plan = EXACT.plan((0, 0, 0, 0, 0, 0, 1, 2), 3, (2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0))
    assert plan.lit_expected <= 0.2
    assert task_loads(plan.route, 3, (2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0)) == (6.0, 4.0, 5.0)


def test_within_the_threshold_nothing_moves() -> None:
    plan = EXACT.plan((0, 0, 1), 2, (5.0, 6.0, 9.0))
    assert plan.moves == ()
    assert plan.lit_expected == plan.lit_before == pytest.approx(0.1)


def test_an_empty_task_alone_triggers_too() -> None:
    # Nobody is 20 % above the mean of 9, but the last task has nothing.
    loads = (2.0,) * 45
    route = tuple(partition % 9 for partition in range(45))
    plan = EXACT.plan(route, 10, loads)
    assert plan.lit_before == 1.0
    assert plan.lit_expected <= 0.2
    assert {move.target for move in plan.moves} == {9}


def test_a_partition_that_is_too_heavy_is_left_alone_and_named() -> None:
    loads = (10.0, 1.0, 1.0, 2.0, 1.0, 1.0)
    plan = EXACT.plan((0, 0, 0, 1, 1, 2), 3, loads)
    assert plan.too_heavy == (0,)
    assert task_loads(plan.route, 3, loads)[plan.route[0]] == 10.0
    assert EXACT.plan(plan.route, 3, loads).moves == ()


def test_it_settles_well_below_the_threshold_so_that_noise_does_not_trigger_it_again() -> None:
    loads = tuple(float(1 + partition % 3) for partition in range(60))
    route = (0,) * 40 + (1,) * 20
    assert Rebalancer(0.2, settle=0.5).plan(route, 2, loads).lit_expected <= 0.1
    assert 0.1 < EXACT.plan(route, 2, loads).lit_expected <= 0.2


def test_a_wrong_threshold_is_refused() -> None:
    with pytest.raises(PenstockError, match="chi must be a share above 0"):
        Rebalancer(chi=0.0)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Route, int, tuple[float, ...], Rebalancer]:
    tasks = draw(st.integers(1, 6))
    partitions = draw(st.integers(tasks, 24))
    route = tuple(draw(st.lists(st.integers(0, tasks - 1), min_size=partitions, max_size=partitions)))
    loads = st.one_of(st.just(0.0), st.floats(0.001, 1000.0), st.integers(1, 5).map(float))
    found = draw(st.lists(loads, min_size=partitions, max_size=partitions))
    rebalancer = Rebalancer(
        draw(st.sampled_from([0.1, 0.2, 0.5, 1.0])), draw(st.sampled_from([0.0, 0.5, 1.0]))
    )
    return route, tasks, tuple(found), rebalancer


@settings(max_examples=60)
@given(situations())
def test_a_plan_never_raises_the_imbalance_and_keeps_every_partition(
    situation: tuple[Route, int, tuple[float, ...], Rebalancer],
) -> None:
    route, tasks, loads, rebalancer = situation
    plan = rebalancer.plan(route, tasks, loads)
    before, after = task_loads(route, tasks, loads), task_loads(plan.route, tasks, loads)
    assert plan.lit_before == load_imbalance(before)
    assert plan.lit_expected == load_imbalance(after) <= load_imbalance(before)
    assert max(after) <= max(before) * (1 + 1e-9)
    # every partition has exactly one owner, at every step of the way
    owners = list(route)
    for move in plan.moves:
        assert owners[move.partition] == move.source != move.target
        owners[move.partition] = move.target
        assert all(0 <= owner < tasks for owner in owners)
    assert tuple(owners) == plan.route
    assert sum(after) == pytest.approx(sum(before))
    assert all(loads[move.partition] > 0 for move in plan.moves)


@settings(max_examples=60)
@given(situations())
def test_on_constant_load_it_comes_to_rest(
    situation: tuple[Route, int, tuple[float, ...], Rebalancer],
) -> None:
    route, tasks, loads, rebalancer = situation
    for _ in range(40):
        plan = rebalancer.plan(route, tasks, loads)
        if not plan.moves:
            return
        route = plan.route
    raise AssertionError("it still moves partitions after 40 looks at the same load")
