"""What is observed of running operators: cost, selectivity with a floor, and the gradient of latency."""

from __future__ import annotations

import math
from typing import Any

import pytest

import penstock as ps
from penstock import col, count, tumbling
from penstock.engine.dispatch.observation import VertexCounts, observation_of, topology_of, window_ns
from penstock.engine.seat.assembly import assemble
from penstock.engine.seat.settings import Settings
from penstock.engine.turns.vertex import Vertex
from penstock.memory.coordinator import MemoryCoordinator
from penstock.scheduling.observation import PERIOD_NS

SCHEMA = {"ts": "timestamp", "x": "int64"}
SOURCE, FILTER, WINDOW, SINK = range(4)
SECOND_NS = 1_000_000_000


def pipeline() -> list[Vertex]:
    app = ps.App("a")
    stream = app.source("numbers", ps.sources.Columns({"ts": [0], "x": [0]}, SCHEMA), event_time="ts")
    counts = stream.filter(col("x") > 0).window(tumbling("10s")).agg(n=count())
    app.sink("out", counts, ps.sinks.Discard())
    return assemble(app.graph(), Settings(workers=1, fusion=False), MemoryCoordinator(background=False))


class Seen:
    """What is observed of vertices, looked at when the test says so."""

    def __init__(self, vertices: list[Vertex]) -> None:
        self._counts = VertexCounts(vertices)
        self._observation = observation_of(vertices, topology_of(vertices), 1)

    def update(self, now_ns: int) -> None:
        self._observation.update(now_ns, self._counts.read())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._observation, name)


def ran(vertex: Vertex, taken: int, emitted: int, busy_ns: int) -> None:
    """As if a turn had done that."""
    vertex.counters.record_turn(0, busy_ns, taken)
    if vertex.operator.out is not None:
        vertex.operator.out.written += emitted


def test_cost_and_selectivity_are_what_was_counted() -> None:
    vertices = pipeline()
    seen = Seen(vertices)
    ran(vertices[FILTER], 1_000, 250, 50_000)
    seen.update(PERIOD_NS)
    assert seen.cost_ns[FILTER] == pytest.approx(50.0)
    assert seen.selectivity[FILTER] == pytest.approx(0.25)


def test_waiting_inside_a_turn_does_not_count_where_large_turns_show_the_cost() -> None:
    vertices = pipeline()
    seen = Seen(vertices)
    ran(vertices[FILTER], 2_000, 0, 20_000)
    ran(vertices[FILTER], 2_000, 0, 9_000_000)
    seen.update(PERIOD_NS)
    assert seen.cost_ns[FILTER] == pytest.approx(10.0 * 1.01)  # the least, which may drift upwards


def test_later_counts_weigh_more_than_earlier_ones() -> None:
    vertices = pipeline()
    seen = Seen(vertices)
    ran(vertices[FILTER], 1_000, 1_000, 10_000)
    seen.update(SECOND_NS)
    ran(vertices[FILTER], 1_000, 0, 90_000)
    seen.update(2 * SECOND_NS)
    kept = math.exp(-1.0)  # of the selectivity after a second; of the cost e^-4
    assert seen.selectivity[FILTER] == pytest.approx(kept / (1 + kept))
    assert seen.cost_ns[FILTER] == pytest.approx((10 * math.exp(-4) + 90) / (1 + math.exp(-4)))


def test_a_window_is_looked_at_for_its_length_and_never_has_selectivity_zero() -> None:
    vertices = pipeline()
    seen = Seen(vertices)
    assert window_ns(vertices[WINDOW]) == 10 * SECOND_NS
    ran(vertices[WINDOW], 1_000, 0, 1_000)
    seen.update(PERIOD_NS)
    assert 0.0 < seen.selectivity[WINDOW] < 1e-3
    assert seen.selectivity[SINK] == 1.0
    assert (seen.cost_ns > 0).all()


def test_an_operator_without_events_keeps_what_was_known() -> None:
    vertices = pipeline()
    seen = Seen(vertices)
    ran(vertices[FILTER], 1_000, 250, 50_000)
    seen.update(PERIOD_NS)
    seen.update(100 * SECOND_NS)
    assert seen.cost_ns[FILTER] == pytest.approx(50.0)
    assert seen.selectivity[FILTER] == pytest.approx(0.25)


def test_the_gradient_is_per_second_and_relative_to_the_latency() -> None:
    vertices = pipeline()
    seen = Seen(vertices)
    histogram = vertices[SINK].latency
    assert histogram is not None
    histogram.record(10_000_000)
    seen.update(SECOND_NS)
    assert seen.latency_ns[SINK] == 10_000_000
    assert seen.latency_gradient[SINK] == 0.0
    histogram.record(20_000_000)
    seen.update(SECOND_NS + SECOND_NS // 2)
    kept = math.exp(-1.0)
    smooth = 10e6 * kept + 20e6 * (1 - kept)
    assert seen.latency_ns[SINK] == pytest.approx(smooth)
    assert seen.latency_gradient[SINK] == pytest.approx((smooth - 10e6) / smooth / 0.5)
    assert math.isnan(seen.latency_gradient[FILTER])


def test_arrays_are_replaced_and_never_changed() -> None:
    vertices = pipeline()
    seen = Seen(vertices)
    before, copy = seen.cost_ns, seen.cost_ns.copy()
    ran(vertices[FILTER], 1_000, 250, 50_000)
    assert seen.is_due(PERIOD_NS)
    seen.update(PERIOD_NS)
    assert not seen.is_due(PERIOD_NS + 1)
    assert (before == copy).all()
    assert seen.cost_ns is not before


def test_the_gradient_is_over_the_time_since_the_marker_before() -> None:
    vertices = pipeline()
    seen = Seen(vertices)
    histogram = vertices[SINK].latency
    assert histogram is not None
    histogram.record(10_000_000)
    seen.update(SECOND_NS)
    for number in range(1, 20):  # looks at which no marker had come
        seen.update(SECOND_NS + number * PERIOD_NS)
    histogram.record(20_000_000)
    seen.update(2 * SECOND_NS)
    kept = math.exp(-2.0)  # a second later, not 50 ms
    smooth = 10e6 * kept + 20e6 * (1 - kept)
    assert seen.latency_gradient[SINK] == pytest.approx((smooth - 10e6) / smooth)


def test_costs_may_be_means_where_turns_show_less() -> None:
    vertices = pipeline()
    counts, topology = VertexCounts(vertices), topology_of(vertices)
    seen = observation_of(vertices, topology, 1, by_least=False)
    ran(vertices[FILTER], 2_000, 0, 20_000)
    ran(vertices[FILTER], 2_000, 0, 60_000)
    seen.update(PERIOD_NS, counts.read())
    assert seen.cost_ns[FILTER] == pytest.approx(20.0)
    assert seen.known_cost_ns[FILTER] == pytest.approx(10.0 * 1.01)
