"""Every partitioner: what must hold for any graph, and what each is for."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.placement.catalogue import PARTITIONERS, partitioner_named
from penstock.placement.first_fit import FirstFit, breadth_first
from penstock.placement.metis import Metis
from penstock.placement.network import GraphNetwork
from penstock.placement.partitioner import Partitioner
from penstock.placement.quality import Quality
from penstock.placement.round_robin import RoundRobinPlacement
from penstock.placement.task_graph import TaskEdge, TaskGraph
from penstock.query.errors import PenstockError
from tests.placement.graphs import PAIRS, task_graphs

QUICK = [Metis(), FirstFit(), RoundRobinPlacement()]


@pytest.mark.parametrize("partitioner", QUICK, ids=lambda one: one.name)
def test_every_task_gets_one_group_and_always_the_same(partitioner: Partitioner) -> None:
    @given(task_graphs(), st.integers(1, 8))
    def check(graph: TaskGraph, groups: int) -> None:
        of = partitioner.partition(graph, groups)
        assert len(of) == len(graph)
        assert set(of) <= set(range(groups))
        assert of == partitioner.partition(graph, groups)

    check()


@given(task_graphs(), st.integers(1, 8))
def test_metis_is_never_worse_than_round_robin_on_both_at_once(graph: TaskGraph, groups: int) -> None:
    metis, dealt = (
        Quality.of(graph, one.partition(graph, groups), groups) for one in (Metis(), RoundRobinPlacement())
    )
    assert not metis.is_worse(dealt)


@pytest.mark.parametrize("partitioner", [Metis(), GraphNetwork(iterations=200)], ids=lambda one: one.name)
def test_tasks_that_talk_much_stay_together_and_load_is_even(partitioner: Partitioner) -> None:
    of = partitioner.partition(PAIRS, 2)
    assert of[0] == of[1] != of[2] == of[3]
    assert Quality.of(PAIRS, of, 2) == Quality(cut=1.0, cut_share=1 / 21, balance=1.0)


def test_a_task_heavier_than_all_others_together_is_left_alone() -> None:
    star = tuple(TaskEdge(0, other, 1.0) for other in range(1, 9))
    assert Metis(weight=0.1).partition(TaskGraph((100.0, *[1.0] * 8), star), 2) == (0, *[1] * 8)
    of = Metis(weight=0.1).partition(TaskGraph((100.0, *[1.0] * 8), star), 3)
    assert of.count(of[0]) == 1
    assert Quality.of(TaskGraph((0.0, *[1.0] * 8), ()), of, 3).balance == pytest.approx(1.5)


def test_the_network_gives_the_same_groups_for_the_same_seed() -> None:
    network = GraphNetwork(iterations=20, starts=1)
    assert network.partition(PAIRS, 2) == network.partition(PAIRS, 2)
    chances = network.chances(PAIRS, 2)
    assert chances.shape == (4, 2)
    assert chances.sum(1) == pytest.approx(1.0)


def test_a_missing_library_is_said_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.placement.network.find_spec", lambda name: None if name == "optax" else 1)
    with pytest.raises(PenstockError, match=r"needs optax.*pip install 'penstock\[network\]'"):
        GraphNetwork().partition(PAIRS, 2)


def test_choosing_another_partitioner_loads_no_network() -> None:
    before = set(sys.modules)
    partitioner_named("metis").partition(PAIRS, 2)
    assert not {"jax", "optax"} & (set(sys.modules) - before)


def test_first_fit_fills_groups_in_breadth_first_order() -> None:
    # 0 feeds 2 and 3, which feed 1: by breadth 0, 2, 3, 1. Room for 6 · 1.1 / 2 = 3.3 each.
    graph = TaskGraph(
        (1.0, 1.0, 2.0, 2.0),
        (TaskEdge(0, 2, 1.0), TaskEdge(0, 3, 1.0), TaskEdge(2, 1, 1.0), TaskEdge(3, 1, 1.0)),
    )
    assert breadth_first(graph) == [0, 2, 3, 1]
    assert FirstFit().partition(graph, 2) == (0, 1, 0, 1)


def test_what_fits_nowhere_goes_where_most_room_is_left() -> None:
    assert FirstFit(slack=0.0).partition(TaskGraph((4.0, 1.0, 1.0), ()), 2) == (0, 1, 1)


def test_round_robin_deals_in_turn() -> None:
    assert RoundRobinPlacement().partition(TaskGraph((1.0,) * 5, ()), 3) == (0, 1, 2, 0, 1)


def test_fewer_tasks_than_groups_leave_groups_empty() -> None:
    for partitioner in QUICK:
        assert len(set(partitioner.partition(PAIRS, 9))) <= 4


def test_names_lead_to_partitioners_and_mistakes_to_the_names() -> None:
    assert {partitioner_named(name).name for name in PARTITIONERS} == set(PARTITIONERS)
    assert partitioner_named(Metis(seed=3)) == Metis(seed=3)
    with pytest.raises(PenstockError, match="partitioners are first_fit, metis, network, round_robin"):
        partitioner_named("kernighan")
    with pytest.raises(PenstockError, match="groups must be at least 1: got 0"):
        Metis().partition(PAIRS, 0)
