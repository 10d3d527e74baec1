"""The cluster's model: against queueing formulas where nothing else happens, and by its own rules."""

from __future__ import annotations

import math

import pytest

from lab.sim.cluster import (
    SYSTEMS,
    Cluster,
    application_for,
    bottleneck,
    evaluate,
    place,
    with_remote_work,
)
from lab.sim.cluster_apps import MERGE, Application, Stage, comm_count, task_shares, top_n
from penstock.placement.nodes import Host
from penstock.placement.task_graph import TaskEdge, TaskGraph


def alone(cost_us: float) -> Application:
    return Application("one", (Stage("only", 1, cost_us),), ((1.0,),))


def test_one_task_on_an_idle_node_is_a_single_server_slowed_by_its_own_node() -> None:
    # 0.5 of one core of two: utilisation 0.25 of the node. M/M/1 would take 100 µs / (1 − 0.5).
    cluster = Cluster(machines=1, awake=1, busiest=0.05)
    used = cluster.nodes()[0].load / 2 + 0.25
    found = evaluate(cluster, SYSTEMS["storm"], alone(100.0), rate=5_000.0)
    assert found.latency_ms == pytest.approx(0.1 / (1 - 0.5) / (1 - used**2))
    assert found.busiest == pytest.approx(used)


def test_the_bottleneck_of_one_task_is_its_thread() -> None:
    # 100 µs a tuple are 10,000 a second at the very most; the highest step below it.
    assert bottleneck(Cluster(), SYSTEMS["storm"], alone(100.0)) == 9_500.0


def test_too_much_is_told_as_endless() -> None:
    assert math.isinf(evaluate(Cluster(), SYSTEMS["storm"], alone(100.0), 10_000.0).latency_ms)


def test_what_leaves_its_node_costs_on_both_sides() -> None:
    graph = TaskGraph((0.1, 0.2, 0.3), (TaskEdge(0, 1, 10_000.0), TaskEdge(1, 2, 10_000.0)))
    loads = with_remote_work(graph, (0, 0, 1), remote_us=10.0).loads
    assert loads == pytest.approx((0.1, 0.3, 0.4))


def test_a_task_graph_has_the_loads_and_rates_of_its_application() -> None:
    application = comm_count(0.0)
    graph = application.task_graph(1_000.0)
    assert len(graph) == 18
    assert graph.total_load == pytest.approx(1_000 * (15 + 60 + 150 + 10) / 1e6)
    assert sum(edge.rate for edge in graph.edges) == pytest.approx(3_000.0)
    assert sum(edge.rate for edge in top_n(1.0).task_graph(1_000.0).edges) == pytest.approx(2_600.0)


@pytest.mark.parametrize("grouping", sorted(MERGE))
@pytest.mark.parametrize("zipf", [0.0, 0.5, 1.0])
def test_shares_are_of_everything(grouping: str, zipf: float) -> None:
    shares = task_shares(zipf, 8, grouping)
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) > 0.0
    assert max(shares) <= max(task_shares(zipf, 8, "hash")) + 1e-9


def test_groupings_that_divide_keys_must_merge() -> None:
    assert [stage.name for stage in comm_count(1.0, "partial_key").stages] == [
        "source",
        "parse",
        "count",
        "count-merge",
        "store",
    ]
    with pytest.raises(ValueError, match="unknown grouping: 'luck'"):
        task_shares(1.0, 8, "luck")


def test_storm_deals_tasks_out_and_first_fit_fills_the_emptiest_node() -> None:
    nodes = [Host("a", 0.8, 2.0), Host("b", 0.1, 2.0), Host("c", 0.0, 2.0, active=False)]
    graph = TaskGraph((0.2, 0.2, 0.2), (TaskEdge(0, 1, 1.0), TaskEdge(1, 2, 1.0)))
    assert place(SYSTEMS["storm"], graph, nodes)[0] == (0, 1, 0)
    assert place(SYSTEMS["r_storm"], graph, nodes)[0] == (1, 1, 1)


def test_placing_anew_helps_where_nodes_are_what_is_short() -> None:
    cluster = Cluster()
    found = {
        system: bottleneck(cluster, SYSTEMS[system], application_for(SYSTEMS[system], "comm_count", 0.4))
        for system in ("storm", "ms_stream_nodes")
    }
    assert found["ms_stream_nodes"] > found["storm"]


def test_equal_seeds_give_equal_clusters() -> None:
    assert Cluster().nodes() == Cluster().nodes()
    assert sum(not node.active for node in Cluster().nodes()) == 6
    system = SYSTEMS["ms_stream"]
    application = application_for(system, "top_n", 1.0)
    assert evaluate(Cluster(), system, application, 8_000.0) == evaluate(
        Cluster(), system, application, 8_000.0
    )
