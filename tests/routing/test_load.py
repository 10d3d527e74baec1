"""Equations 6 to 11 by hand."""

from __future__ import annotations

import pytest

from penstock.routing.imbalance import load_imbalance, mean_load
from penstock.routing.load import (
    MeasuredLoad,
    NodeUse,
    Share,
    combined_loads,
    cpu_loads,
    loads,
    memory_loads,
    partition_loads,
    task_loads,
)


def test_equation_6_gives_each_task_its_weighted_share_of_the_nodes_cpu() -> None:
    # 2·30 + 1·40 = 100 weighted rows share 0.5: 60 of them have 0.3, 40 have 0.2
    assert cpu_loads([Share(30, cost=2.0), Share(40, cost=1.0)], 0.5) == pytest.approx((0.3, 0.2))


def test_the_shares_of_a_node_add_up_to_its_load_unlike_the_equation_as_printed() -> None:
    shares = [Share(30, cost=2.0), Share(40, cost=1.0), Share(7, cost=5.0)]
    assert sum(cpu_loads(shares, 0.8)) == pytest.approx(0.8)
    printed = sum(
        s.cost * s.rows / (sum(t.cost for t in shares) * sum(t.rows for t in shares)) for s in shares
    )
    assert printed * 0.8 == pytest.approx(0.8 * 135 / (8 * 77))


def test_equation_7_a_task_that_does_not_run_has_no_load() -> None:
    assert cpu_loads([Share(30, running=False), Share(10)], 0.5) == pytest.approx((0.0, 0.5))


def test_equation_8_shares_memory_by_space() -> None:
    # 1·10 + 3·10 = 40 share 0.4
    assert memory_loads([Share(10, space=1.0), Share(10, space=3.0)], 0.4) == pytest.approx((0.1, 0.3))


def test_equation_9_weighs_cpu_and_memory() -> None:
    shares = [Share(10, cost=3.0, space=1.0), Share(10, cost=1.0, space=3.0)]
    # CPU 0.75 and 0.25 of 0.8, memory 0.25 and 0.75 of 0.4
    assert loads(shares, NodeUse(0.8, 0.4), mu=0.5) == pytest.approx((0.35, 0.25))
    assert loads(shares, NodeUse(0.8, 0.4), mu=1.0) == pytest.approx((0.6, 0.2))
    with pytest.raises(ValueError, match="between 0 and 1"):
        loads(shares, NodeUse(), mu=1.5)


def test_equations_10_and_11() -> None:
    assert mean_load([1.0, 2.0, 6.0]) == 3.0
    assert load_imbalance([1.0, 2.0, 6.0]) == pytest.approx(1.0)  # (6 − 3) / 3 before (3 − 1) / 3
    assert load_imbalance([3.0, 3.0, 0.0]) == pytest.approx(1.0)  # (2 − 0) / 2 before (3 − 2) / 2


def test_with_two_tasks_the_imbalance_cannot_exceed_1() -> None:
    assert load_imbalance([5.0, 0.0]) == 1.0


def test_nothing_to_do_is_no_imbalance() -> None:
    assert load_imbalance([0.0, 0.0]) == 0.0


def test_partitions_share_their_tasks_time_by_rows() -> None:
    # task 0: 40 rows in 400 ns, so 10 each; task 1: 20 rows in 600, so 30 each
    observed = MeasuredLoad((0, 1, 0), 2, (10, 20, 30), (400.0, 600.0))
    assert partition_loads(observed) == pytest.approx((0.1, 0.6, 0.3))
    assert task_loads(observed.route, 2, partition_loads(observed)) == pytest.approx((0.4, 0.6))


def test_state_counts_by_its_weight() -> None:
    observed = MeasuredLoad((0, 1), 2, (10, 10), (100.0, 100.0), (30.0, 10.0))
    assert partition_loads(observed, mu=0.5) == pytest.approx((0.625, 0.375))


def test_a_task_without_measured_time_costs_what_rows_cost_elsewhere() -> None:
    observed = MeasuredLoad((0, 1), 2, (10, 30), (0.0, 300.0))
    first, second = partition_loads(observed)
    assert second / first == pytest.approx(30 * 10.0 / (10 * 300.0 / 40))


def test_measurements_must_be_of_the_route() -> None:
    with pytest.raises(ValueError, match="rows has 1 entries"):
        MeasuredLoad((0, 1), 2, (10,), (0.0, 0.0))


def test_operators_that_share_a_route_count_by_their_time() -> None:
    first = MeasuredLoad((0, 1), 2, (10, 10), (30.0, 30.0))
    second = MeasuredLoad((0, 1), 2, (10, 0), (20.0, 0.0))
    # 60 of 80 ns are halved, 20 of 80 belong to the first partition
    assert combined_loads([first, second]) == pytest.approx((0.75 * 0.5 + 0.25, 0.75 * 0.5))
