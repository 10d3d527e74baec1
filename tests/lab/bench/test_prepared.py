"""Prepared events: the same as the workload makes, and time goes on when they begin again."""

from __future__ import annotations

import numpy as np
import pytest

from lab.bench.measuring.prepared import Stretch, add_query, prepared, replayed
from lab.workloads.mix import LINEAR_ROAD, TAXI, YAHOO
from penstock.app import App
from penstock.query.types import Schema


def test_events_begin_again_with_time_going_on() -> None:
    columns = {"ts": np.array([10, 20, 30]), "price": np.array([1.5, 2.5, 3.5])}
    fill = replayed(columns, Stretch(3, {"ts": 30}))
    target = {"ts": np.zeros(9, np.int64), "price": np.zeros(9)}
    fill(1, 7, target, 1)
    assert target["ts"].tolist() == [0, 20, 30, 40, 50, 60, 70, 80, 0]
    assert target["price"].tolist() == [0, 2.5, 3.5, 1.5, 2.5, 3.5, 1.5, 2.5, 0]


@pytest.mark.parametrize("workload", [YAHOO, LINEAR_ROAD, TAXI], ids=lambda workload: workload.name)
def test_the_next_stretch_begins_where_the_workload_itself_would_go_on(workload) -> None:  # type: ignore[no-untyped-def]
    fill, _ = prepared(workload.name)
    events = {"yahoo": 1_200_000, "linear_road": 1_000_000, "taxi": 600_000}[workload.name]
    made, _ = workload.made(1, None)
    ours, theirs = (
        {field.name: np.zeros(6, field.dtype.numpy) for field in Schema.of(dict(workload.fields))}
        for _ in range(2)
    )
    fill(events - 3, 6, ours, 0)
    made(events - 3, 6, theirs, 0)
    assert ours[workload.event_time].tolist() == theirs[workload.event_time].tolist()
    assert all(np.array_equal(ours[name][:3], theirs[name][:3]) for name in ours)


def test_queries_over_the_same_prepared_events_share_no_operator() -> None:
    app = App("prepared")
    names = [add_query(app, "yahoo", name, 1_000.0) for name in ("one", "two")]
    graph = app.graph()
    assert names == ["one-events", "two-events"]
    assert len([node for node in graph.nodes if node.kind == "source"]) == 2
    assert len({node.id for node in graph.nodes}) == len(graph.nodes) == 12
