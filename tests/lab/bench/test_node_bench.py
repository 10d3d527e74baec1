"""The hand-fused loops count what their queries mean, and the benchmark's runs are of the same events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.bench.node.bench import WORKERS, FusedYahoo, graph_of, limit_of
from lab.workloads.linear_road.fused import FusedLinearRoad
from lab.workloads.mix import LINEAR_ROAD, TAXI, YAHOO
from lab.workloads.taxi.fused import FusedTaxi
from lab.workloads.taxi.query import distance_per_cell
from penstock.app import App
from penstock.connectors.memory.generator import Generator
from penstock.connectors.memory.sink import Memory
from penstock.engine.node import Node
from penstock.query.steps import SourceSpec
from penstock.query.types import Schema

EVENTS = 20_000


def columns_of(workload: Any) -> dict[str, NDArray[Any]]:
    fill, _ = workload.made(1, None)
    columns = {field.name: np.zeros(EVENTS, field.dtype.numpy) for field in Schema.of(dict(workload.fields))}
    fill(0, EVENTS, columns, 0)
    return columns


def test_the_taxi_loop_counts_the_trips_of_the_query() -> None:
    loop = FusedTaxi(columns_of(TAXI), 700)
    fill, _ = TAXI.made(1, None)
    app, sink = App("taxi"), Memory()
    source = Generator(fill, Schema.of(dict(TAXI.fields)), limit=EVENTS, vocabulary=TAXI.vocabulary)
    app.sink("out", distance_per_cell(app.source("trips", source, event_time=TAXI.event_time)), sink)
    app.run(on=Node(workers=1))
    rows = sink.rows()
    assert loop.run() == sum(row["trips"] for row in rows) > 0
    assert np.isclose(loop.miles.sum(), sum(row["trips"] * row["distance"] for row in rows))
    by_cell = {row["pickup_cell"]: row["trips"] for row in rows}
    assert {cell: int(loop.trips[:, cell].sum()) for cell in by_cell} == by_cell  # it is one window


def test_the_linear_road_loop_keeps_every_car_of_a_minute_once() -> None:
    columns = columns_of(LINEAR_ROAD)
    loop = FusedLinearRoad(columns, 700)
    reports = columns["type"] == 0
    assert loop.run() == np.count_nonzero(reports)
    names = ("xway", "dir", "seg", "vid")
    minute = columns["ts"][reports] // 60_000_000
    cars = np.unique(np.stack([minute, *(columns[name][reports] for name in names)]), axis=1)
    latest = minute.max()
    kept = loop._cars[:, 0] == latest
    assert np.count_nonzero(kept) == np.count_nonzero(cars[0] == latest)
    in_latest = reports.copy()
    in_latest[reports] = minute == latest
    assert loop._sums[kept].sum(axis=0).tolist() == [
        np.count_nonzero(in_latest),
        int(columns["speed"][in_latest].sum()),
    ]


def test_the_yahoo_loop_counts_a_third() -> None:
    assert FusedYahoo(columns_of(YAHOO), 700).run() == (EVENTS + 2) // 3


@pytest.mark.parametrize("workload", ["yahoo", "linear_road", "taxi"])
def test_a_query_s_source_has_a_partition_for_every_worker(workload: str) -> None:
    source = graph_of(workload, 100_000.0)[f"{workload}-events"].spec_as(SourceSpec).source
    assert source.partitions == WORKERS


def test_the_limit_takes_all_prepared_events_with_every_thread() -> None:
    passes = []
    assert limit_of("taxi", [lambda: passes.append(1) or 0] * 2, 0.0) > 0  # type: ignore[func-returns-value]
    assert len(passes) == 2
