"""Enjima's query-scaling experiment on a small scale."""

from __future__ import annotations

import pytest

from lab.sim.query_scaling import WORKLOADS, scale_queries


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_operators_alone_can_follow_their_input(workload: str) -> None:
    """No operator is the bottleneck by itself: it has one thread at a time and must do a query's rate."""
    graph = WORKLOADS[workload]()
    (arrivals,) = graph.arrivals.values()
    rate = [arrivals.per_second, *[0.0] * (len(graph.operators) - 1)]  # type: ignore[attr-defined]
    for number, operator in enumerate(graph.operators):
        assert rate[number] * operator.cost.event.mean_ns / 1e9 < 0.9, operator.name
        for reader in graph.children[number]:
            rate[reader] += rate[number] * getattr(operator.selectivity, "out_per_in", 0.0)


def test_points_tell_throughput_and_latency_by_policy_and_queries() -> None:
    points = scale_queries("taxi", policies=("state", "threads"), queries=(1, 2), seconds=0.02, cores=8)
    assert [(point.policy, point.queries) for point in points] == [
        ("state", 1),
        ("threads", 1),
        ("state", 2),
        ("threads", 2),
    ]
    for point in points:
        assert point.offered == pytest.approx(8e6 * point.queries, rel=0.01)
        assert 0 < point.throughput <= point.offered * 1.001
        assert 0 < point.mean_ms <= point.p99_ms
