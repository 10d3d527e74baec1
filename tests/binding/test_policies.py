"""The binding policies: what the greedy one may and may not do, and what Algorithm 1 does as printed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.binding.catalogue import BINDINGS, binding_named, installation_named
from penstock.binding.greedy import Greedy
from penstock.binding.greedy_literal import GreedyLiteral
from penstock.binding.policy import Load
from penstock.binding.static import DealingOrder, Static, round_robin
from penstock.query.errors import PenstockError

finite = st.floats(0, 1e12, allow_subnormal=False)
policies = st.sampled_from([0.0, 0.05, 0.1, 1.0]).map(lambda tolerance: Greedy(tolerance=tolerance))
EAGER = Greedy(tolerance=0.0)
works = st.one_of(finite, st.integers(0, 20).map(float), st.just(0.0))


@st.composite
def loads(draw: st.DrawFn) -> Load:
    threads = draw(st.integers(1, 8))
    bound = draw(st.lists(st.tuples(st.integers(0, threads - 1), works), max_size=40))
    return Load(tuple(thread for thread, _ in bound), tuple(work for _, work in bound), threads)


def workloads(load: Load) -> list[float]:
    sums = [0.0] * load.threads
    for thread, work in zip(load.binding, load.work, strict=True):
        sums[thread] += work
    return sums


def rebound(load: Load, policy: Greedy | GreedyLiteral) -> Load:
    binding, _ = policy.plan(load, None)
    return Load(binding, load.work, load.threads)


# -- greedy ----------------------------------------------------------------------------------------


def test_greedy_leaves_one_large_operator_where_it_is() -> None:
    assert EAGER.plan(Load((0, 1), (10.0, 1.0), 2), None) == ((0, 1), None)


def test_greedy_moves_the_smallest_first_until_the_thread_is_at_the_average() -> None:
    # wl = [12, 0, 0], average 4. Ascending: 1 → thread 1 (11, 1, 0); 2 → thread 2 (9, 1, 2);
    # 3 → thread 1, the least (6, 4, 2); 6 stays: 2 + 6 is not less than 6.
    assert EAGER.plan(Load((0, 0, 0, 0), (6.0, 3.0, 1.0, 2.0), 3), None)[0] == (0, 1, 1, 2)


def test_greedy_does_not_move_operators_without_load() -> None:
    binding, _ = EAGER.plan(Load((0, 0, 0, 0, 1), (0.0, 8.0, 0.0, 5.0, 1.0), 2), None)
    assert binding == (0, 0, 0, 1, 1)


def test_greedy_with_a_tolerance_leaves_threads_alone_that_are_a_little_above_the_average() -> None:
    load = Load((0, 0, 1), (1.0, 5.0, 4.0), 2)  # 6 and 4, the average is 5
    assert Greedy(tolerance=0.2).plan(load, None)[0] == load.binding
    assert Greedy(tolerance=0.1).plan(load, None)[0] == (1, 0, 1)


def test_a_thread_beyond_the_tolerance_comes_down_to_the_average() -> None:
    # 14 and 6, the average is 10: 11 would do for the tolerance, but not for the next noise
    load = Load((0, 0, 0, 0, 0, 1), (1.0, 1.0, 1.0, 1.0, 10.0, 6.0), 2)
    assert Greedy(tolerance=0.1).plan(load, None)[0] == (1, 1, 1, 1, 0, 1)


def test_operators_that_are_nothing_within_the_tolerance_stay_where_they_are() -> None:
    # 16.2 and 4, the average is 10.1: six operators of 0.1 are less than a tenth of that, six of 4 are not
    load = Load((0, 0, 0, 0, 0, 1), (0.1, 0.1, 4.0, 4.0, 8.0, 4.0), 2)
    assert Greedy(tolerance=0.1).plan(load, None)[0] == (0, 0, 1, 1, 0, 1)
    assert EAGER.plan(load, None)[0] == (1, 1, 1, 0, 0, 1)  # then 8.2 + 4 is not less than 12


def test_noise_moves_next_to_nothing_with_the_tolerance_and_a_lot_without() -> None:
    random = np.random.default_rng(0)
    true_work = np.repeat(
        [1.0, 0.01], 240
    )  # ten large and ten small ones on every thread: even, but for noise

    def moves(policy: Greedy) -> int:
        binding, moved = policy.initial(["a"] * 480, 24), []
        for _ in range(10):
            work = true_work * random.normal(1.0, 0.03, 480)
            after, _ = policy.plan(Load(binding, tuple(work.tolist()), 24), None)
            moved.append(sum(a != b for a, b in zip(after, binding, strict=True)))
            binding = after
        return sum(moved)

    assert moves(Greedy()) == 0
    assert moves(EAGER) > 300


@pytest.mark.parametrize("tolerance", [-0.1, float("nan"), float("inf")])
def test_a_tolerance_is_a_share(tolerance: float) -> None:
    with pytest.raises(PenstockError, match="tolerance must be a share of at least 0"):
        Greedy(tolerance=tolerance)


@given(loads(), policies)
def test_greedy_moves_only_what_has_load(load: Load, greedy: Greedy) -> None:
    after = rebound(load, greedy)
    for old, new, work in zip(load.binding, after.binding, load.work, strict=True):
        assert old == new or work > 0
        assert 0 <= new < load.threads


@given(loads(), policies)
def test_greedy_never_raises_the_largest_workload(load: Load, greedy: Greedy) -> None:
    before, after = max(workloads(load)), max(workloads(rebound(load, greedy)))
    assert after <= before * (1 + 1e-12)  # the sums here are rounded, the policy's are not


@given(loads(), policies)
@example(Load((0, 0, 1), (0.1, 0.2, 0.3), 2), EAGER)  # 0.1 + 0.2 is rounded to more than 0.3
def test_greedy_comes_to_rest_on_constant_load(load: Load, greedy: Greedy) -> None:
    rested = at_rest(load, greedy)
    assert rebound(rested, greedy) == rested


@given(loads())
def test_without_a_tolerance_threads_at_rest_differ_by_the_smallest_load_of_the_fullest(load: Load) -> None:
    load = at_rest(load, EAGER)
    full = [thread for thread, sum_ns in enumerate(workloads(load)) if sum_ns == max(workloads(load))]
    smallest = min(
        (work for thread, work in zip(load.binding, load.work, strict=True) if thread == full[0] and work),
        default=0.0,
    )
    spread = max(workloads(load)) - min(workloads(load))
    assert spread <= smallest * (1 + 1e-9) + 1e-3  # else the smallest of the fullest thread had moved


def at_rest(load: Load, greedy: Greedy) -> Load:
    for _ in range(len(load.work) * load.threads + 1):
        after = rebound(load, greedy)
        if after == load:
            return load
        load = after
    pytest.fail(f"still moving: {load}")


# -- Algorithm 1 as printed ------------------------------------------------------------------------


def test_the_literal_algorithm_turns_10_and_1_into_0_and_11() -> None:
    load = Load((0, 1), (10.0, 1.0), 2)
    after = rebound(load, GreedyLiteral())
    assert after.binding == (1, 1)
    assert workloads(after) == [0.0, 11.0]


def test_the_literal_algorithm_never_settles_on_constant_load() -> None:
    load = Load((0, 1), (10.0, 1.0), 2)
    seen = []
    for _ in range(6):
        load = rebound(load, GreedyLiteral())
        seen.append(load.binding)
    assert seen == [(1, 1), (0, 0)] * 3


def test_the_literal_algorithm_moves_operators_without_load() -> None:
    assert GreedyLiteral().plan(Load((0, 0, 1), (0.0, 8.0, 0.0), 2), None)[0] == (1, 1, 1)


# -- static ----------------------------------------------------------------------------------------

TRIPLE = ("filter", "count", "filter", "average", "filter", "top")  # three queries of two operators each


def test_interleaved_round_robin_puts_every_top_k_on_four_of_24_threads() -> None:
    binding = round_robin(TRIPLE * 50, 24)
    tops = {binding[operator] for operator in range(300) if TRIPLE[operator % 6] == "top"}
    assert tops == {5, 11, 17, 23}


@pytest.mark.parametrize("order", DealingOrder)
def test_round_robin_gives_every_thread_its_share(order: DealingOrder) -> None:
    binding = round_robin(TRIPLE * 50, 24, order)
    assert set(Counter(binding).values()) <= {300 // 24, 300 // 24 + 1}
    assert len(binding) == 300


def test_by_type_deals_out_each_kind_evenly() -> None:
    binding = round_robin(TRIPLE * 50, 24, DealingOrder.BY_TYPE)
    tops = Counter(binding[operator] for operator in range(300) if TRIPLE[operator % 6] == "top")
    assert len(tops) == 24
    assert set(tops.values()) == {2, 3}


def test_shuffled_depends_on_its_seed_only() -> None:
    one, same, other = (round_robin(TRIPLE * 9, 5, DealingOrder.SHUFFLED, seed) for seed in (1, 1, 2))
    assert one == same != other


def test_static_keeps_the_binding_whatever_the_load() -> None:
    policy = Static(DealingOrder.SHUFFLED, seed=3)
    binding = policy.initial(TRIPLE, 4)
    assert policy.plan(Load(binding, (1e9, 0, 0, 0, 0, 0), 4), None)[0] == binding
    assert not policy.adapts


# -- names -----------------------------------------------------------------------------------------


def test_policies_are_found_by_name() -> None:
    assert {"greedy", "greedy_literal", "static", "static_by_type", "static_shuffled"} <= set(BINDINGS)
    assert binding_named("static_by_type") == Static(DealingOrder.BY_TYPE)
    assert binding_named("greedy_by_type").initial(TRIPLE, 4) == Static(DealingOrder.BY_TYPE).initial(
        TRIPLE, 4
    )
    assert {binding_named(name).name for name in BINDINGS if "greedy" in name} == {
        "greedy",
        "greedy_by_type",
        "greedy_eager",
        "greedy_literal",
    }
    policy = Greedy()
    assert binding_named(policy) is policy


def test_unknown_names_are_told_with_those_that_exist() -> None:
    with pytest.raises(PenstockError, match=r"unknown binding: 'gready'; bindings are greedy"):
        binding_named("gready")
    with pytest.raises(PenstockError, match=r"unknown installation: 'lazy'; installations are barrier"):
        installation_named("lazy")


def test_a_load_without_the_work_of_every_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="2 operators are bound, but work is given of 1"):
        Load((0, 1), (1.0,), 2)
