"""Equations 5, 13, 18, 24, 25, 31 to 35, 37 and 38 of ms-stream, worked by hand."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.placement import nodes, partitioner, round_robin, task_graph
from penstock.placement.deployment import fits
from penstock.placement.loss import LossWeights, count_imbalance, expected_cut, load_imbalance, loss
from penstock.placement.nodes import Host, node_imbalance, node_load
from penstock.placement.quality import Quality, balance, cut, group_loads, objective
from penstock.placement.task_graph import TaskEdge, TaskGraph, trimmed_rate
from penstock.query.errors import PenstockError
from tests.placement.graphs import PAIRS

EVEN = (0, 0, 1, 1)
CROSSED = (0, 1, 0, 1)


@pytest.mark.parametrize("module", [nodes, partitioner, round_robin, task_graph])
def test_examples(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_equation_5_leaves_out_the_largest_and_the_smallest() -> None:
    assert trimmed_rate([5.0, 100.0, 7.0, 0.0, 6.0]) == 6.0
    assert trimmed_rate([3.0, 5.0]) == 4.0  # too few to leave any out
    assert trimmed_rate([]) == 0.0


def test_equation_12_is_taken_both_ways_and_without_the_diagonal() -> None:
    graph = TaskGraph((1.0, 1.0), (TaskEdge(0, 1, 3.0), TaskEdge(1, 0, 4.0), TaskEdge(1, 1, 50.0)))
    assert graph.traffic().tolist() == [[0.0, 7.0], [7.0, 0.0]]


def test_equation_18_counts_what_travels_between_groups() -> None:
    assert cut(PAIRS, EVEN) == 1.0
    assert cut(PAIRS, CROSSED) == 21.0


def test_equation_25_sums_loads_by_group() -> None:
    assert group_loads(PAIRS, EVEN, 3).tolist() == [3.0, 3.0, 0.0]
    assert group_loads(PAIRS, (0, 0, 0, 1), 2).tolist() == [4.0, 2.0]
    assert balance(PAIRS, (0, 0, 0, 1), 2) == 4 / 3


def test_equation_13_weighs_traffic_against_evenness() -> None:
    # Groups {0, 1, 2} and {3}: between them 10 of 21; loads 4 and 2, of 6.
    # Σ |W/k − ΣW/k²| = |4/2 − 6/4| + |2/2 − 6/4| = 1; as a share of ΣW/k = 3: 1/3.
    assert objective(PAIRS, (0, 0, 0, 1), 2, weight=0.0) == pytest.approx(1 / 3)
    assert objective(PAIRS, (0, 0, 0, 1), 2, weight=1.0) == pytest.approx(10 / 21)
    assert objective(PAIRS, (0, 0, 0, 1), 2, weight=0.25) == pytest.approx(0.25 * 10 / 21 + 0.75 / 3)
    assert objective(PAIRS, EVEN, 2) == pytest.approx(0.5 / 21)


def hard(groups: tuple[int, ...]) -> np.ndarray:
    return np.eye(2)[list(groups)]


def test_equation_31_is_the_normalised_cut_where_groups_are_certain() -> None:
    # Degrees 10, 11, 11, 10. Even: Γ = (21, 21), cut 1: 1/21 + 1/21.
    assert expected_cut(hard(EVEN), PAIRS.traffic()) == pytest.approx(2 / 21)
    # {0, 1, 2} and {3}: Γ = (32, 10), cut 10: 10/32 + 10/10.
    assert expected_cut(hard((0, 0, 0, 1)), PAIRS.traffic()) == pytest.approx(10 / 32 + 1.0)


def test_equation_31_with_chances() -> None:
    # Two tasks that exchange 4. Y = [[3/4, 1/4], [1/2, 1/2]], H = (4, 4), Γ = (5, 3).
    y = np.array([[0.75, 0.25], [0.5, 0.5]])
    # (0, 1): 3/4/5 · 1/2 + 1/4/3 · 1/2 = 0.11667; (1, 0): 1/2/5 · 1/4 + 1/2/3 · 3/4 = 0.15; times 4.
    assert expected_cut(y, np.array([[0.0, 4.0], [4.0, 0.0]])) == pytest.approx(4 * (0.116666667 + 0.15))


def test_a_group_that_nobody_may_belong_to_divides_nothing_by_zero() -> None:
    assert expected_cut(hard((0, 0, 0, 0)), PAIRS.traffic()) == 0.0


def test_equations_33_and_34_are_squares_of_what_is_over_or_missing() -> None:
    y = np.array([[0.75, 0.25], [0.5, 0.5], [1.0, 0.0], [0.25, 0.75]])  # sums 2.5 and 1.5
    assert count_imbalance(y) == pytest.approx(0.5**2 + 0.5**2)
    # Loads 2, 1, 1, 2: 1.5 + 0.5 + 1 + 0.5 = 3.5 and 2.5, of 3 each.
    assert load_imbalance(y, np.array(PAIRS.loads)) == pytest.approx(0.5**2 + 0.5**2)
    # Without the square the sum would be 0, whatever the groups.
    assert load_imbalance(hard((0, 0, 0, 0)), np.array(PAIRS.loads)) == 2 * 3.0**2


def test_equation_35_weighs_the_three() -> None:
    y, loads = hard((0, 0, 0, 1)), np.array(PAIRS.loads)
    # 1.3125 for the cut, (3 − 2)² + (1 − 2)² = 2 in number, (4 − 3)² + (2 − 3)² = 2 in load.
    assert loss(y, loads, PAIRS.traffic(), LossWeights()) == pytest.approx(1.3125 + 2 + 2)
    assert loss(y, loads, PAIRS.traffic(), LossWeights(4.0, 0.5, 0.25)) == pytest.approx(5.25 + 1 + 0.5)


def test_equation_35_is_the_same_in_jax() -> None:
    jnp = pytest.importorskip("jax.numpy")
    y = np.array([[0.75, 0.25], [0.5, 0.5], [1.0, 0.0], [0.25, 0.75]])
    arrays = (y, np.array(PAIRS.loads), PAIRS.traffic())
    expected = loss(*arrays, LossWeights(1.0, 0.1, 2.0))
    assert float(loss(*map(jnp.asarray, arrays), LossWeights(1.0, 0.1, 2.0))) == pytest.approx(expected, 1e-5)


def test_equation_24_weighs_cpu_and_memory() -> None:
    assert node_load(0.5, 0.1, mu=1.0) == 0.5
    assert node_load(0.5, 0.1, mu=0.5) == 0.3
    with pytest.raises(PenstockError, match="mu must be between 0 and 1"):
        node_load(0.5, 0.1, mu=1.5)


def test_equation_37_fills_a_node_up_to_its_threshold() -> None:
    assert fits(0.3, Host("a", 0.5), 0.8)
    assert not fits(0.31, Host("a", 0.5), 0.8)
    assert fits(1.1, Host("twice", 0.5, capacity=2.0), 0.8)


def test_equation_38_is_the_larger_of_too_much_and_too_little() -> None:
    assert node_imbalance([0.9, 0.5, 0.4]) == pytest.approx(3 * 0.9 / 1.8 - 1)  # 0.5 above, 1/3 below
    assert node_imbalance([0.6, 0.6, 0.0]) == 1.0  # the third is a whole mean below
    assert node_imbalance([0.4, 0.4]) == 0.0
    assert node_imbalance([0.0, 0.0]) == 0.0
    assert node_imbalance([]) == 0.0


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=20), st.floats(0.1, 10.0))
def test_imbalance_has_no_unit(loads: list[float], factor: float) -> None:
    lin = node_imbalance(loads)
    assert 0.0 <= lin <= len(loads)
    assert node_imbalance([load * factor for load in loads]) == pytest.approx(lin, abs=1e-6)


def test_worse_means_worse_on_both_counts() -> None:
    even = Quality(cut=10.0, cut_share=0.1, balance=1.2)
    assert Quality(11.0, 0.11, 1.3).is_worse(even)
    assert not Quality(11.0, 0.11, 1.2).is_worse(even)
    assert not Quality(9.0, 0.09, 1.3).is_worse(even)


def test_a_graph_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(PenstockError, match="load of task 'count' must be a number of at least 0: got -1"):
        TaskGraph.of({"split": 1.0, "count": -1.0}, {})
    with pytest.raises(PenstockError, match="an edge joins tasks 0 and 2; tasks are 0 to 1"):
        TaskGraph((1.0, 1.0), (TaskEdge(0, 2, 1.0),))
    with pytest.raises(PenstockError, match="rate between tasks 0 and 1"):
        TaskGraph((1.0, 1.0), (TaskEdge(0, 1, float("nan")),))
    with pytest.raises(PenstockError, match="2 tasks have loads, but 1 have names"):
        TaskGraph((1.0, 1.0), (), ("one",))
