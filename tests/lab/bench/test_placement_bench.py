"""The placement benchmark's own arithmetic, on figures made by hand, and its drawings."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

import penstock as ps
from lab.baselines.random_graphs import layered
from lab.bench.placement.partitions import (
    Partitioned,
    cut_ratios,
    summary,
    worse_than_round_robin,
)
from lab.bench.placement.plots import draw_partitions, draw_simulated, draw_spark
from lab.bench.placement.simulated import ZIPF, simulate, simulated_ratios
from lab.bench.placement.spark import (
    HEAVY,
    HeavyRows,
    Smoothed,
    behind_s,
    check_heavy,
    heavy_app,
    is_steady,
    latency_ratios,
    rounds_for,
)
from lab.bench.traffic_feed import Measured, MicroBatch, SinkArrivals
from lab.sim.cluster import Cluster
from penstock.placement.measured import measured_graph
from penstock.placement.quality import Quality
from penstock.query.errors import PenstockError
from penstock.query.user_functions import Context


def measured(system: str, latency_ms: list[float], missing: int = 0) -> Measured:
    return Measured(system, 30, latency_ms, missing, [], SinkArrivals(), 0.0)


def test_ratios_count_only_runs_that_kept_up_and_parted() -> None:
    results = {
        "one_group": measured("one_group", [2_000.0] * 4),
        "groups_auto": measured("groups_auto", [400.0] * 4),
        "groups_named": measured("groups_named", [500.0] * 4),
    }
    parted = {"one_group": False, "groups_auto": True, "groups_named": True}
    assert latency_ratios(results, parted) == {
        "light_latency_one_group_over_groups": 5.0,
        "light_latency_one_group_over_named_groups": 4.0,
    }
    assert math.isnan(
        latency_ratios(results, parted | {"groups_auto": False})["light_latency_one_group_over_groups"]
    )
    behind = results | {"one_group": measured("one_group", [2_000.0] * 4, missing=1)}
    assert all(math.isnan(value) for value in latency_ratios(behind, parted).values())


def test_a_run_that_reads_as_much_as_it_may_does_not_keep_up() -> None:
    steady = measured("one_group", [2_000.0] * 4)
    assert is_steady(steady)
    assert is_steady(replace(steady, batches=[MicroBatch(0.0, 900.0, {})]))
    assert not is_steady(replace(steady, batches=[MicroBatch(0.0, 7_900.0, {})]))


def test_runs_that_differ_in_a_result_are_found_out() -> None:
    one, other = HeavyRows(), HeavyRows()
    one([{"id": 1, "at": 5, "smoothed": 2.0}, {"id": 1, "at": 9, "smoothed": 3.0}])
    other([{"id": 1, "at": 5, "smoothed": 2.0}])
    check_heavy([one, other])
    other([{"id": 1, "at": 9, "smoothed": 3.1}])
    with pytest.raises(PenstockError, match=r"car 1 at 9 µs is 3\.0 and 3\.1"):
        check_heavy([one, other])


def test_how_far_the_heavy_query_is_behind() -> None:
    arrivals, heavy = SinkArrivals(), HeavyRows()
    arrivals.add("count_0", [{"window_start": 9_000_000}])
    heavy([{"id": 1, "at": 7_500_000, "smoothed": 0.0}])
    assert behind_s(arrivals, heavy) == 2.5


def test_the_heavy_function_does_as_many_rounds_as_it_is_told() -> None:
    def after(rounds: int) -> float:
        context = Context((1,), {"estimate": 0.0, "error": 1.0, "events": 0}, set())
        Smoothed(rounds).on_event({"speed": 10.0}, context)
        return float(context.state["estimate"])

    assert 0.0 < after(1) < after(50) < 10.0
    assert rounds_for(1.0, 1_000.0, 0.01) > rounds_for(0.01, 1_000.0, 0.01) >= 1


def test_the_app_has_the_light_queries_and_the_heavy_one() -> None:
    rows = ps.sources.Rows(
        [], {"ts": "timestamp", "id": "int64", "speed": "float64", "lane": "int32", "road": "int32"}
    )
    queries = [
        node.id
        for node in heavy_app(rows, 30, 10, SinkArrivals(), HeavyRows()).graph()
        if node.kind == "sink"
    ]
    assert len(queries) == 31
    assert HEAVY in queries


def partitioned(name: str, cut: float, balance: float) -> Partitioned:
    return Partitioned("graph", 4, 2, name, Quality(cut, cut / 100, balance), 1.0)


def test_worse_on_both_is_counted_and_worse_on_one_is_not(tmp_path: Path) -> None:
    found = [
        partitioned("round_robin", 60.0, 1.2),
        partitioned("metis", 20.0, 1.3),
        partitioned("first_fit", 70.0, 1.3),
    ]
    assert worse_than_round_robin(found) == {"metis": [], "first_fit": ["graph in 2"]}
    assert cut_ratios(found)["cut_round_robin_over_metis"] == pytest.approx(3.0)
    assert summary(found)["partitioners"]["metis"]["balance_worst"] == 1.3
    assert Path(draw_partitions(found, tmp_path / "partitions.png")).exists()


def test_the_paper_s_figures_are_drawn(tmp_path: Path) -> None:
    found = simulate(Cluster(), seeds=1, zipf=ZIPF)
    paths = draw_simulated(found, tmp_path)
    assert [Path(path).name for path in sorted(paths)] == [f"placement-figure-{n}.png" for n in range(12, 20)]
    assert all(Path(path).exists() for path in paths)
    assert simulated_ratios(found)["simulated_bottleneck_ms_stream_over_storm"] > 1.0
    assert Path(draw_spark({"one_group": [1.0, 2.0]}, tmp_path / "spark.png")).exists()


def test_random_graphs_are_the_same_for_a_seed() -> None:
    assert layered(20, 3) == layered(20, 3) != layered(20, 4)
    assert len(layered(3, 0)) == 3


def test_a_measured_run_becomes_a_task_graph() -> None:
    app = ps.App("measured")
    rows = [{"ts": number, "x": number} for number in range(1_000)]
    events = app.source("events", ps.sources.Rows(rows, {"ts": "timestamp", "x": "int64"}), event_time="ts")
    app.sink("even", events.filter(ps.col("x") % 2 == 0), ps.sinks.Memory())
    graph = app.graph()
    summary_of_run = app.run(on=ps.Node(workers=1))
    found = measured_graph(graph, summary_of_run.metrics)
    rates = {(found.names[e.sender], found.names[e.receiver]): e.rate for e in found.edges}
    elapsed_s = summary_of_run.metrics.elapsed_s
    (filtering,) = (name for name in found.names if name not in ("events", "even"))
    assert rates["events", filtering] * elapsed_s == pytest.approx(1_000)
    assert rates[filtering, "even"] * elapsed_s == pytest.approx(500)
    assert all(load > 0.0 for load in found.loads)
