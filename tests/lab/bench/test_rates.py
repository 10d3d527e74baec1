"""Rates: the search finds the highest one that is sustained, and says what it knows of several runs."""

from __future__ import annotations

import math
from typing import cast

import pytest

from lab.bench.measuring.rates import (
    Lengths,
    Paced,
    all_queries,
    farthest_behind_s,
    highest_rate,
    interval,
    run_paced,
    run_unpaced,
)
from penstock.engine.node import Node
from penstock.engine.seat.summary import NodeSummary
from penstock.metrics.histogram import LatencyHistogram
from penstock.metrics.operators import OperatorMetrics
from penstock.metrics.run import RunMetrics
from penstock.query.graph import Graph

NOTHING = RunMetrics(1.0, (), {})
GRAPH = cast("Graph", None)  # the scripted runs below do not look at it


class Machine:
    """Sustains every rate below ``capacity``; remembers what it was asked."""

    def __init__(self, capacity: float, *, is_late: bool = True) -> None:
        self.capacity = capacity
        self.asked: list[float] = []
        self.is_late = is_late  # what is too much shows as latency; otherwise as sources that fall behind

    def __call__(self, rate: float) -> Paced:
        self.asked.append(rate)
        fits = rate <= self.capacity
        p99_ms = 500.0 if self.is_late and not fits else 10.0
        return Paced(rate, min(rate, self.capacity), 1.0, p99_ms, fits or self.is_late, NOTHING)


def source(name: str, processed: int) -> OperatorMetrics:
    return OperatorMetrics(name, "source", 0, processed, processed, 1, 1, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("is_late", [True, False])
@pytest.mark.parametrize("start", [1.0, 90.0, 100.0, 101.0, 5_000.0])
def test_the_search_comes_as_near_as_its_steps_allow(start: float, is_late: bool) -> None:
    machine = Machine(100.0, is_late=is_late)
    found = highest_rate(machine, start, steps=6)
    assert 100.0 / 2 ** (1 / 64) < found.rate <= 100.0


def test_the_search_doubles_and_then_bisects_in_log_space() -> None:
    machine = Machine(100.0)
    found = highest_rate(machine, 16.0, steps=2)
    assert machine.asked == pytest.approx([16, 32, 64, 128, 64 * 2**0.5, 64 * 2**0.75])
    assert found.rate == pytest.approx(64 * 2**0.5)


def test_the_search_goes_down_by_its_growth_when_the_start_is_too_much() -> None:
    machine = Machine(100.0)
    found = highest_rate(machine, 180.0, steps=1, growth=1.5)
    assert machine.asked == pytest.approx([180, 120, 80, (80 * 120) ** 0.5])
    assert found.rate == pytest.approx((80 * 120) ** 0.5)


def test_a_run_that_failed_while_the_machine_was_taken_away_is_repeated() -> None:
    asked: list[float] = []

    def run(rate: float) -> Paced:
        asked.append(rate)
        is_disturbed = len(asked) == 1
        fits = rate <= 100.0 and not is_disturbed
        stolen = 0.2 if is_disturbed else 0.0
        return Paced(rate, rate, 1.0, 10.0 if fits else 500.0, True, NOTHING, stolen)

    found = highest_rate(run, 64.0, steps=1)
    assert asked == pytest.approx([64, 64, 128, 64 * 2**0.5])
    assert found.rate == pytest.approx(64 * 2**0.5)


def test_a_run_that_fails_whenever_it_is_disturbed_is_given_up() -> None:
    asked: list[float] = []

    def run(rate: float) -> Paced:
        asked.append(rate)
        return Paced(rate, rate, 1.0, 10.0 if rate <= 50.0 else 500.0, True, NOTHING, 0.2)

    assert highest_rate(run, 64.0, steps=0).rate == 32.0
    assert asked == [64.0, 64.0, 32.0]


def test_a_patient_search_tries_every_rate_that_fails_twice() -> None:
    asked: list[float] = []

    def run(rate: float) -> Paced:
        asked.append(rate)
        is_unlucky = len(asked) == 1
        return Paced(rate, rate, 1.0, 10.0 if rate <= 100.0 and not is_unlucky else 500.0, True, NOTHING)

    assert highest_rate(run, 64.0, steps=0, patient=True).rate == 64.0
    assert asked == [64.0, 64.0, 128.0, 128.0]


def test_a_system_that_sustains_nothing_is_reported_as_such() -> None:
    assert not highest_rate(Machine(0.0), 1e6).sustains(100.0)


def test_the_interval_is_students() -> None:
    # 2 ± t(0.975, 2) · 1 / √3, and t(0.975, 2) = 4.302653
    mean, low, high = interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert (low, high) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    assert interval([5.0, 5.0]) == (5.0, 5.0, 5.0)


def test_one_value_has_no_interval() -> None:
    mean, low, high = interval([5.0])
    assert mean == 5.0
    assert math.isnan(low)
    assert math.isnan(high)


def test_the_source_that_is_farthest_behind_counts() -> None:
    # after 2 s at 100 a second: one has read all 200, the other 150 and so is 0.5 s behind
    metrics = RunMetrics(2.0, (source("a", 200), source("b", 150)), {})
    assert farthest_behind_s(metrics, {"a": 100.0, "b": 100.0}) == pytest.approx(0.5)


def test_a_neglected_query_shows_in_the_latency_of_all() -> None:
    latencies = [LatencyHistogram() for _ in range(10)]
    for query, histogram in enumerate(latencies):
        for _ in range(20):
            histogram.record(1_000_000 if query else 3_000_000_000)
    metrics = RunMetrics(1.0, (), {str(n): h.snapshot() for n, h in enumerate(latencies)})
    together = all_queries(metrics)
    assert together.count == 200
    assert together.quantile_ms(0.5) < 1.1
    assert together.quantile_ms(0.99) > 2_900


class ScriptedRun:
    """A node and its execution: says at each look what it was told to, and notes what was asked of it."""

    def __init__(self, *looks: RunMetrics, drains: bool = True) -> None:
        self.looks = list(looks)
        self.drains = drains
        self.calls: list[str] = []

    def start(self, graph: Graph) -> ScriptedRun:
        return self

    def wait(self, timeout_s: float) -> bool:
        return self.drains and "stop" in self.calls

    def metrics(self) -> RunMetrics:
        return self.looks.pop(0)

    def stop(self) -> None:
        self.calls.append("stop")

    def abort(self) -> None:
        self.calls.append("abort")

    def finish(self) -> NodeSummary:
        return NodeSummary.of(self.looks[-1] if self.looks else NOTHING, complete=True)


def look(elapsed_s: float, processed: int, *latencies_ms: int) -> RunMetrics:
    histogram = LatencyHistogram()
    for latency_ms in latencies_ms:
        histogram.record(latency_ms * 1_000_000)
    return RunMetrics(elapsed_s, (source("a", processed),), {"q": histogram.snapshot()})


def test_a_paced_run_leaves_the_warm_up_out_and_counts_what_arrives_while_it_drains() -> None:
    scripted = ScriptedRun(look(1.0, 50, 900), look(3.0, 250, 900, 10), look(3.5, 250, 900, 10, 20, 400))
    run = run_paced(GRAPH, cast("Node", scripted), {"a": 100.0}, Lengths())
    assert (run.rate, run.achieved) == (100.0, 100.0)
    assert run.metrics.latency["q"].count == 3  # the 900 ms came in the warm-up
    assert run.p50_ms == pytest.approx(20, rel=0.02)
    assert run.p99_ms == pytest.approx(400, rel=0.02)
    assert not run.kept  # 250 of 300 events after 3 s: half a second behind
    assert scripted.calls == ["stop"]


def test_a_source_may_be_behind_by_the_limit() -> None:
    looks = look(1.0, 50), look(3.0, 295), look(3.5, 295, 10)
    kept = [
        run_paced(GRAPH, cast("Node", ScriptedRun(*looks)), {"a": 100.0}, Lengths(), p99_ms=limit_ms).kept
        for limit_ms in (51.0, 49.0)
    ]
    assert kept == [True, False]


def test_a_run_that_does_not_drain_is_ended() -> None:
    scripted = ScriptedRun(look(1.0, 1), look(2.0, 1), look(9.0, 1), drains=False)
    run_paced(GRAPH, cast("Node", scripted), {"a": 1.0}, Lengths())
    assert scripted.calls == ["stop", "abort"]


def test_an_unpaced_run_is_cut_off() -> None:
    scripted = ScriptedRun(look(1.0, 50), look(3.0, 250))
    metrics = run_unpaced(GRAPH, cast("Node", scripted), Lengths())
    assert (metrics.read, metrics.elapsed_s) == (200, 2.0)
    assert scripted.calls == ["abort"]
