"""The riot benchmark's own arithmetic, on figures made by hand, and that both systems do the same work."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path

import pytest

from lab.bench.measuring.rates import Lengths, Paced
from lab.bench.riot.bench import LEVELS, SHARES
from lab.bench.riot.operators import OperatorFigures, operator_figures, utilisation_variation
from lab.bench.riot.plots import draw_consumption, draw_curves, draw_queues, draw_variation
from lab.bench.riot.rates import confirmed, ratio_interval, rounds_ratios, search_rates
from lab.bench.riot.runs import (
    SYSTEMS,
    RatePoint,
    RiotExtent,
    RiotTopology,
    in_turn,
    median_point,
    point_of,
    published,
)
from penstock.engine.node import Node
from penstock.metrics.histogram import LatencyHistogram
from penstock.metrics.operators import OperatorMetrics
from penstock.metrics.run import RunMetrics

MS = 1_000_000


def operator(name: str, kind: str = "batch", **counts: int) -> OperatorMetrics:
    numbers = {field.name: 0 for field in fields(OperatorMetrics) if field.name not in ("id", "kind")}
    return OperatorMetrics(id=name, kind=kind, **{**numbers, "elapsed_ns": 1_000 * MS, **counts})


def pred_metrics() -> RunMetrics:
    latency = LatencyHistogram()
    for ms in (1, 2, 6):
        latency.record(ms * MS)
    waits = {"markers": 10, "turns": 10}
    return RunMetrics(
        elapsed_s=1.0,
        operators=(
            operator("pred", "source", processed=100, turns=10),
            operator("parse.0.share", "filter", processed=100, turns=20, busy_ns=900 * MS),
            operator("parse.0", processed=60, busy_ns=300 * MS, marker_wait_ns=40 * MS, **waits),
            operator("parse.1", processed=40, busy_ns=100 * MS, marker_wait_ns=80 * MS, **waits),
            operator("messages", "union", processed=100, turns=10, busy_ns=900 * MS),
            operator("decision_tree", processed=100, busy_ns=400 * MS, schedule_wait_ns=200 * MS, turns=20),
            operator("publish.0", "sink", processed=150, turns=10),
        ),
        latency={"publish.0": latency.snapshot()},
    )


def test_operators_are_averaged_over_instances_without_the_parts_that_deal_out() -> None:
    figures = operator_figures(pred_metrics())
    assert list(figures) == ["parse", "decision_tree", "publish"]
    parse = figures["parse"]
    assert parse.queue_ms == pytest.approx((4.0 + 8.0) / 2)
    assert parse.utilisation == pytest.approx((0.3 + 0.1) / 2)
    assert parse.compute_ms == pytest.approx((5.0 + 2.5) / 2)
    assert parse.events_per_turn == pytest.approx((6.0 + 4.0) / 2)
    tree = figures["decision_tree"]
    assert tree.utilisation == pytest.approx(0.6)  # with work: 400 ms in turns and 200 ms before them
    assert tree.schedule_ms == pytest.approx(10.0)
    assert math.isnan(tree.queue_ms)  # no marker came by


def test_utilisation_varies_by_its_deviation_over_its_mean() -> None:
    figures = operator_figures(pred_metrics())  # 0.2, 0.6, 0.0: mean 0.8 / 3
    mean = 0.8 / 3
    deviation = math.sqrt(((0.2 - mean) ** 2 + (0.6 - mean) ** 2 + mean**2) / 3)
    assert utilisation_variation(figures) == pytest.approx(deviation / mean)
    assert math.isnan(utilisation_variation({}))


def test_a_point_counts_what_reached_the_publishers() -> None:
    metrics = pred_metrics()
    point = point_of(Paced(110.0, 100.0, 2.0, 6.0, True, metrics), 1.5)
    assert published(metrics) == 150
    assert (point.rate, point.read_per_s, point.published_per_s) == (110.0, 100.0, 150.0)
    assert point.mean_ms == pytest.approx(3.0)
    assert point.messages_per_turn == pytest.approx(5.0)
    assert (point.turns_per_message, point.switches_per_message) == (pytest.approx(0.9), 1.5)


def test_rounds_of_one_rate_become_the_median_of_each_figure() -> None:
    one = RatePoint(10.0, 10.0, 20.0, 1.0, 1.0, 5.0, 0.5, 2.0, 3.0, 4.0)
    points = [one, replace(one, p99_ms=50.0, mean_ms=0.5), replace(one, p99_ms=7.0, mean_ms=2.0)]
    assert median_point(points) == replace(one, p99_ms=7.0, mean_ms=1.0)


def test_a_round_gives_one_ratio_and_the_systems_take_turns_in_being_first() -> None:
    assert rounds_ratios({"congestion": [90.0, 120.0], "threads": [60.0, 120.0]}) == [1.5, 1.0]
    assert [in_turn(("a", "b"), number) for number in range(3)] == [("a", "b"), ("b", "a"), ("a", "b")]


def test_the_interval_of_ratios_is_that_of_their_logarithms() -> None:
    # Logarithms 0, ln 2, ln 4: mean ln 2, deviation ln 2, error ln 2 / √3; t(0.975, 2) = 4.302653.
    mean, low, high = ratio_interval([1.0, 2.0, 4.0])
    half = 4.302653 * math.log(2) / math.sqrt(3)
    assert (mean, low, high) == pytest.approx((2.0, 2 * math.exp(-half), 2 * math.exp(half)))
    assert ratio_interval([2.0, 2.0]) == pytest.approx((2.0, 2.0, 2.0))


def test_a_round_in_which_a_system_sustained_nothing_leaves_the_interval_open() -> None:
    ratios = rounds_ratios({"congestion": [90.0, math.nan, 90.0], "threads": [60.0, 60.0, 60.0]})
    mean, low, high = ratio_interval(ratios)
    assert mean == pytest.approx(1.5)
    assert math.isnan(low)
    assert math.isnan(high)
    assert all(math.isnan(value) for value in ratio_interval([math.nan]))


PLAN = RiotExtent(Lengths(0, 0), 1, Lengths(0, 1), 2, growth=4.0, steps=1, confirmation=Lengths(0, 9))


def paced(rate: float, limit: float, kept: bool = True) -> Paced:
    return Paced(rate, rate, 1.0, 50.0 if rate <= limit else 500.0, kept, pred_metrics())


def test_a_rate_counts_if_it_is_sustained_once_more_or_else_the_next_lower_one() -> None:
    tried: list[float] = []

    def run(rate: float) -> Paced:
        tried.append(rate)
        return paced(rate, 30.0)

    assert confirmed(run, paced(100.0, 100.0), PLAN).rate == 25.0  # a step is the root of 4
    assert tried == [100.0, 50.0, 25.0]
    assert not confirmed(run, paced(1e12, 1e12), PLAN).sustains(100.0)
    late = confirmed(lambda rate: paced(rate, 1e9, kept=False), paced(100.0, 100.0), PLAN)
    assert not late.sustains(100.0)  # in time, but it did not keep up


class Imagined(RiotTopology):
    """A system of which the limit is known; long runs show that it is lower than short ones say."""

    def run(self, node: Node, rate: float, lengths: Lengths) -> Paced:
        limit = 300.0 if node == SYSTEMS["congestion"] else 100.0
        return paced(rate, limit if lengths == PLAN.confirmation else 1.2 * limit)


def test_the_search_finds_what_each_system_sustains(tmp_path: Path) -> None:
    # From 50: 200 is sustained, 800 and 400 are not; or 200 is not and 100 is. Later rounds start there.
    rates = search_rates(Imagined("stats", tmp_path), 50.0, PLAN)
    assert rates == {"congestion": [200.0, 200.0], "threads": [100.0, 100.0]}


def test_a_search_without_any_sustained_rate_says_so(tmp_path: Path) -> None:
    class Hopeless(RiotTopology):
        def run(self, node: Node, rate: float, lengths: Lengths) -> Paced:
            return paced(rate, 0.0)

    rates = search_rates(Hopeless("stats", tmp_path), 50.0, PLAN)
    assert all(math.isnan(rate) for found in rates.values() for rate in found)


def test_queues_are_looked_into_at_rates_of_the_curve() -> None:
    assert set(LEVELS.values()) <= set(SHARES)


@pytest.mark.parametrize("name", ["pred", "stats"])
def test_both_systems_publish_the_same_number_of_rows(name: str, tmp_path: Path) -> None:
    topology = RiotTopology(name, tmp_path)
    counts = {system: published(topology.run_all(node, 60)) for system, node in SYSTEMS.items()}
    assert counts["congestion"] == counts["threads"] >= 60


def test_plots_are_written(tmp_path: Path) -> None:
    points = [RatePoint(rate, rate, 2 * rate, 1.0, 1.0, 5.0, 0.5, 2.0, 3.0, 4.0) for rate in (10.0, 20.0)]
    systems = {"congestion": points, "threads": points}
    curves = dict.fromkeys(("pred", "stats", "etl", "train"), systems)
    levels = {level: {"parse": OperatorFigures(1.0, 0.1, 0.1, 0.5, 2.0)} for level in ("low", "high")}
    paths = [
        draw_curves(curves, tmp_path / "curves.png"),
        draw_variation(curves, tmp_path / "variation.png"),
        draw_consumption({"all": points, "a thread per operator": points}, tmp_path / "consumption.png"),
        draw_queues({"congestion": levels, "threads": levels}, tmp_path / "queues.png"),
    ]
    assert all(Path(path).stat().st_size > 1_000 for path in paths)
