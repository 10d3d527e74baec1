"""Algorithm 3, worked by hand, and what must hold for any groups and nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.placement.deployment import deploy
from penstock.placement.nodes import Host
from penstock.placement.redeployment import MoveCosts, RedeploymentOutcome, decide, utilisation
from penstock.placement.round_robin import RoundRobinPlacement
from penstock.placement.task_graph import TaskEdge, TaskGraph
from penstock.query.errors import PenstockError


def asleep(name: str, capacity: float = 1.0) -> Host:
    return Host(name, 0.0, capacity, active=False)


def test_the_heaviest_group_goes_to_the_node_with_most_room() -> None:
    nodes = [Host("a", 0.5), Host("b", 0.1), Host("c", 0.3)]
    found = deploy([0.2, 0.6, 0.4], nodes)
    assert found.node_of == {0: 0, 1: 1, 2: 2}
    assert found.complete
    assert found.activated == ()
    assert found.loads([0.2, 0.6, 0.4], nodes) == pytest.approx({0: 0.7, 1: 0.7, 2: 0.7})


def test_activated_nodes_come_before_those_asleep() -> None:
    # Line 8 of the printed algorithm would put the node asleep in front, with its load of 0.
    found = deploy([0.3, 0.2], [asleep("new"), Host("a", 0.4), Host("b", 0.1)])
    assert found.node_of == {0: 2, 1: 1}
    assert found.activated == ()


def test_a_group_that_fits_no_activated_node_wakes_one_and_lighter_ones_do_not() -> None:
    found = deploy([0.2, 0.7], [Host("a", 0.3), asleep("new"), asleep("another")])
    assert found.node_of == {0: 0, 1: 1}
    assert found.activated == (1,)


def test_more_groups_than_activated_nodes_wake_as_many_as_are_missing() -> None:
    found = deploy([0.3, 0.4, 0.2], [Host("a", 0.1), asleep("new"), asleep("another"), asleep("third")])
    assert found.node_of == {0: 1, 1: 0, 2: 2}  # no inactive node twice, as line 17 would
    assert found.activated == (1, 2)


def test_what_fits_nowhere_is_an_outcome_that_says_why() -> None:
    found = deploy([0.9, 0.2, 0.1], [Host("a", 0.1), asleep("new")])
    assert found.node_of == {1: 0, 2: 1}
    assert not found.complete
    assert found.unplaced == {
        0: "its load is 0.9, and the most that a free node can take is 0.8: more groups, or a larger node"
    }
    assert deploy([0.1, 0.1], [Host("a")]).unplaced == {
        1: "every node has a group already: fewer groups, or more nodes"
    }


def test_room_is_what_counts_where_nodes_are_unequal() -> None:
    nodes = [Host("small", 0.0, 1.0), Host("large", 1.0, 4.0)]  # room for 0.8 and for 2.2
    assert deploy([0.5, 2.0], nodes).node_of == {0: 0, 1: 1}


@pytest.mark.parametrize("threshold", [0.0, 1.1])
def test_a_threshold_is_a_share(threshold: float) -> None:
    with pytest.raises(PenstockError, match="threshold must be a share"):
        deploy([0.1], [Host("a")], threshold)


def test_nodes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(PenstockError, match="node 'a' is not active, but has a load of"):
        Host("a", 0.5, active=False)
    with pytest.raises(PenstockError, match="capacity of node 'a' must be above 0"):
        Host("a", capacity=0.0)
    with pytest.raises(PenstockError, match="load of node 'a'"):
        Host("a", -0.1)


some_nodes = st.lists(
    st.one_of(
        st.builds(Host, st.just("on"), st.floats(0.0, 1.5), st.floats(0.5, 2.0)),
        st.builds(asleep, st.just("off"), st.floats(0.5, 2.0)),
    ),
    max_size=8,
)


@given(st.lists(st.floats(0.0, 1.5), max_size=8), some_nodes, st.floats(0.1, 1.0))
def test_any_deployment_keeps_its_promises(loads: list[float], nodes: list[Host], threshold: float) -> None:
    found = deploy(loads, nodes, threshold)
    assert sorted([*found.node_of, *found.unplaced]) == list(range(len(loads)))
    assert len(set(found.node_of.values())) == len(found.node_of)  # eq. 22: at most one group a node
    for group, number in found.node_of.items():
        assert loads[group] + nodes[number].load <= threshold * nodes[number].capacity + 1e-9
    free = [node for number, node in enumerate(nodes) if number not in found.node_of.values()]
    for group in found.unplaced:  # nothing is left out that a free node could still take
        assert all(loads[group] + node.load > threshold * node.capacity - 1e-9 for node in free)
    if found.activated:
        heaviest = max(loads[group] for group, number in found.node_of.items() if number in found.activated)
        spare = [threshold * node.capacity - node.load for node in free if node.active]
        assert all(heaviest > room - 1e-9 for room in spare)  # nobody is woken without need


# -- when to place anew --------------------------------------------------------------------------------------

CHAIN = TaskGraph((0.3, 0.3, 0.1, 0.1), (TaskEdge(0, 1, 10.0), TaskEdge(1, 2, 10.0), TaskEdge(2, 3, 10.0)))
TWO = [Host("a"), Host("b")]


def test_within_the_threshold_nothing_is_planned() -> None:
    decision = decide(CHAIN, TWO, (0, 1, 0, 1), groups=2)
    assert decision.outcome is RedeploymentOutcome.BALANCED
    assert decision.placement == (0, 1, 0, 1)
    assert decision.lin_before == 0.0


def test_a_node_asleep_does_not_count_as_imbalance() -> None:
    assert decide(CHAIN, [*TWO, asleep("c")], (0, 1, 0, 1), 2).outcome is RedeploymentOutcome.BALANCED


def test_imbalance_leads_to_a_plan_that_says_what_it_expects() -> None:
    decision = decide(CHAIN, TWO, (0, 0, 1, 1), groups=2, partitioner=RoundRobinPlacement())
    # 0.6 and 0.2: LIN 0.5. Dealt out in turn: 0.4 and 0.4. The busiest node gains 0.2 s in every second.
    assert decision.lin_before == pytest.approx(0.5)
    assert decision.outcome is RedeploymentOutcome.MOVE
    assert decision.placement == (0, 1, 0, 1)
    assert decision.lin_expected == pytest.approx(0.0)
    assert decision.gain_s == pytest.approx(0.2 * 60)
    assert decision.moved == (1, 2)
    assert decision.cost_s == pytest.approx(0.5 * 0.4)


def test_a_plan_that_would_not_pay_for_its_moves_is_not_carried_out() -> None:
    heavy = MoveCosts(state_s=(0.0, 60.0, 0.0, 0.0))  # 60.5 s · 0.3 and 0.5 s · 0.1, for a gain of 12 s
    decision = decide(CHAIN, TWO, (0, 0, 1, 1), groups=2, partitioner=RoundRobinPlacement(), costs=heavy)
    assert decision.outcome is RedeploymentOutcome.NOT_WORTH_IT
    assert decision.placement == (0, 0, 1, 1)
    assert decision.cost_s == pytest.approx(18.2)


def test_a_task_heavier_than_all_others_cannot_be_divided() -> None:
    graph = TaskGraph((0.7, 0.05), ())
    assert decide(graph, TWO, (0, 1), groups=2).outcome is RedeploymentOutcome.NO_BETTER


def test_groups_that_fit_nowhere_leave_everything_as_it_is() -> None:
    graph = TaskGraph((0.9, 0.2), ())
    decision = decide(graph, TWO, (0, 0), groups=2)
    assert decision.outcome is RedeploymentOutcome.UNPLACEABLE
    assert decision.placement == (0, 0)
    assert decision.deployment is not None
    assert 0 in decision.deployment.unplaced


@given(
    st.lists(st.floats(0.0, 0.3), min_size=1, max_size=8),
    st.lists(st.floats(0.0, 0.5), min_size=2, max_size=5),
    st.randoms(use_true_random=False),
)
def test_no_decision_makes_the_busiest_node_busier(
    loads: list[float], others: list[float], random: object
) -> None:
    nodes = [Host(str(number), load) for number, load in enumerate(others)]
    graph = TaskGraph(tuple(loads), ())
    placement = tuple(random.randrange(len(nodes)) for _ in loads)  # type: ignore[attr-defined]
    decision = decide(graph, nodes, placement, groups=len(nodes), imbalance=0.1)
    before, after = (max(utilisation(graph, nodes, one).values()) for one in (placement, decision.placement))
    assert after <= before + 1e-9
    assert decision.outcome is RedeploymentOutcome.MOVE or decision.placement == placement
