"""Equations 1 and 2 of enjima, on its own example and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.scheduling.output_cost import output_cost, output_selectivity
from penstock.scheduling.topology import Topology
from tests.scheduling.snapshots import EXAMPLE, EXAMPLE_SELECTIVITY, chain


def test_output_selectivity_of_the_worked_example() -> None:
    # E 1; D 0.3 · 1; C 0.25 · 1; B 1 · max(0.25, 0.3); A 1 · 0.3
    found = output_selectivity(EXAMPLE, np.array(EXAMPLE_SELECTIVITY))
    assert found == pytest.approx([0.3, 0.3, 0.25, 0.3, 1.0])


def test_output_cost_of_the_worked_example() -> None:
    # c / S̄ of each is E 0.5, D 1.667, C 2, B 1.667, A 1.667; sums over itself and its distinct descendants:
    # E 0.5; D 1.667 + 0.5; C 2 + 0.5; B 1.667 + 2 + 1.667 + 0.5; A 1.667 + 5.833. E counts once for B and A.
    found = output_cost(EXAMPLE, np.full(5, 0.5), np.array(EXAMPLE_SELECTIVITY))
    assert found == pytest.approx([7.5, 5.8333, 2.5, 2.1667, 0.5], rel=1e-4)


def test_a_chain_by_hand() -> None:
    # S̄: 1, 0.5, 0.25 from the back (0.5 · 0.5); costs 2/0.25 + 3/0.5 + 4/1 = 18, 3/0.5 + 4 = 10, 4
    found = output_cost(chain(3), np.array([2.0, 3.0, 4.0]), np.array([0.5, 0.5, 1.0]))
    assert found == pytest.approx([18.0, 10.0, 4.0])


def test_what_many_queries_share_costs_as_much_as_all_of_them_and_brings_what_the_best_does() -> None:
    # A source of 2 ns that 150 filters read, 3 ns each, of which one event in two passes, each before a sink
    # of 4 ns. S̄ of the source is 0.5, however many read it; its cost is its own, 2 / 0.5, and that of all
    # behind it, 3 / 0.5 + 4 each.
    queries = 150
    children = (
        tuple(range(1, queries + 1)),
        *((queries + n,) for n in range(1, queries + 1)),
        *((),) * queries,
    )
    shared = Topology(children, ("source", *("filter",) * queries, *("sink",) * queries))
    cost_ns = np.array([2.0, *[3.0] * queries, *[4.0] * queries])
    selectivity = np.array([1.0, *[0.5] * queries, *[1.0] * queries])
    found = output_cost(shared, cost_ns, selectivity)
    assert found[0] == pytest.approx(2 / 0.5 + queries * (3 / 0.5 + 4))
    assert found[1] == pytest.approx(3 / 0.5 + 4)  # so whoever reads a shared operator goes before it


def test_an_operator_that_nobody_reads_is_its_own_end() -> None:
    lone = Topology(((), ()), ("source", "map"))
    assert output_cost(lone, np.array([2.0, 3.0]), np.array([1.0, 0.5])) == pytest.approx([2.0, 6.0])
