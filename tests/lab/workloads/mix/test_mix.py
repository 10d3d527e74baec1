"""Queries by the number: names, rates, sources of their own, and that they run."""

from __future__ import annotations

import pytest

from lab.workloads.mix import linear_road_queries, mix_queries, taxi_queries, yahoo_queries
from penstock.app import App
from penstock.connectors.memory.sink import Memory
from penstock.engine.node import Node
from penstock.query.steps import SinkSpec, SourceSpec


@pytest.mark.parametrize(
    ("build", "operators"), [(yahoo_queries, 6), (linear_road_queries, 10), (taxi_queries, 5)]
)
@pytest.mark.parametrize("n", [1, 3])
def test_every_query_has_operators_of_its_own(build, operators: int, n: int) -> None:  # type: ignore[no-untyped-def]
    app = App("bench")
    names = build(app, n)
    graph = app.graph()
    assert len(graph) == n * operators
    assert [node.id for node in graph if isinstance(node.spec, SinkSpec)] == names
    assert sum(isinstance(node.spec, SourceSpec) for node in graph) == n


def test_a_mix_takes_the_workloads_in_turn() -> None:
    names = mix_queries(App("bench"), 7)
    assert names == ["yahoo-1", "linear_road-2", "taxi-3", "yahoo-4", "linear_road-5", "taxi-6", "yahoo-7"]


def test_rates_are_for_all_or_one_for_each() -> None:
    app = App("bench")
    mix_queries(app, 2, rate=[1_000.0, [(1.0, 500.0), (2.0, 1_000.0)]])
    mix_queries(App("bench"), 2, rate=[(1.0, 500.0)])  # steps, for both
    with pytest.raises(ValueError, match="one rate for each query: got 2 for 3"):
        mix_queries(App("bench"), 3, rate=[1.0, 2.0])
    with pytest.raises(ValueError, match="a mix needs a query"):
        mix_queries(App("bench"), 0)


def test_a_mix_runs_and_its_queries_differ_in_their_data() -> None:
    app = App("bench")
    sinks: dict[str, Memory] = {}

    def kept(name: str) -> Memory:
        return sinks.setdefault(name, Memory())

    names = mix_queries(app, 6, limit=20_000, sink=kept)
    summary = app.run(on=Node(workers=2))
    assert summary.complete
    assert summary.metrics.read == 6 * 20_000
    assert list(sinks) == names
    assert all(sink.rows() for sink in sinks.values())
    assert sinks["taxi-3"].rows() != sinks["taxi-6"].rows()
