"""The simulation benchmark's own arithmetic on figures made by hand, and small simulations."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from lab.bench.measuring.rates import Lengths, Paced
from lab.bench.measuring.report import Report
from lab.bench.scheduling.systems import THREADS, systems
from lab.bench.simulation.bench import (
    FULL,
    SHORT,
    order_figures,
    scaled,
    scaling_figures,
    scaling_ratios,
)
from lab.bench.simulation.calibration import Calibrated, by_turns, calibrated
from lab.bench.simulation.load import Usage
from lab.bench.simulation.plots import draw_predictions, draw_scaling
from lab.bench.simulation.policies import (
    POLICIES,
    clear_order,
    highest_of_rounds,
    highest_rates,
    latency_ms,
    order_of,
    predict,
    run_like,
    together,
)
from lab.sim.calibration import MachineCosts
from lab.sim.operators import SimulatedWindow
from penstock.engine.node import Node
from penstock.metrics.operators import OperatorMetrics
from penstock.metrics.run import RunMetrics
from penstock.metrics.turns import TurnRecord
from penstock.scheduling.dispatch.rules import Rules

PREDICTED = {"a": {1e6: 10.0, 2e6: 1_000.0}, "b": {1e6: 20.0, 2e6: 500.0}, "c": {1e6: 20.5, 2e6: 50.0}}
MEASURED = {
    "a": {1e6: [5.0, 6.0, 7.0], 2e6: [900.0, 800.0, 700.0]},
    "b": {1e6: [4.0, 8.0, 9.0], 2e6: [1_000.0, 2_000.0, 3_000.0]},
    "c": {1e6: [70.0, 80.0, 90.0], 2e6: [60.0, 50.0, 40.0]},
}


def operator(id_: str, kind: str, turns: int, events: int, busy_ns: int, emitted: int) -> OperatorMetrics:
    return OperatorMetrics(id_, kind, 0, events, emitted, turns, busy_ns, 0, 0, 0, 0, 0, 0, 0)


def metrics(turns: int, events: int) -> RunMetrics:
    """5,000 ns a turn; 20 ns an event at the source, which is halved, and 60 ns at the sink."""
    source = operator("in", "source", turns, events, turns * 5_000 + events * 20, events // 2)
    sink = operator("out", "sink", turns, events // 2, turns * 5_000 + events * 30, 0)
    return RunMetrics(1.0, (source, sink), {})


def found() -> Calibrated:
    """Deciding takes 15 µs with ``state`` and 40 µs with ``min_cost``; threads take the lock nine times."""
    runs = [metrics(100, 10_000), metrics(20, 200_000)]
    first = calibrated(runs, {"in": ("out",), "out": ()}, {"in": 1.0}, MachineCosts(7_000.0, 900.0))
    return replace(first, decision_ns={"state": 15_000.0, "min_cost": 40_000.0}, lock_uses=9)


# -- calibration ---------------------------------------------------------------------------------


def test_calibration_tells_turns_events_and_decisions_apart() -> None:
    figures = found().figures()
    assert figures["turn_ns"] == pytest.approx(5_000)
    assert figures["event_ns"] == pytest.approx({"in": 20.0, "out": 60.0})
    assert figures["decision_ns"] == {"state": 15_000.0, "min_cost": 40_000.0}
    assert figures["context_switch_ns"] == 7_000.0


def test_capacity_counts_every_operator_by_the_events_that_reach_it() -> None:
    # 20 ns, and 60 ns for every second event: 50 ns an event on two cores
    assert found().capacity(2) == pytest.approx(40e6)


def test_threads_pay_for_no_decisions() -> None:
    state, threads = found().machine("state", 2), found().machine(THREADS, 2)
    assert (state.serial_ns, threads.serial_ns) == (15_000, 0)
    assert state.holds_interpreter
    assert (state.lock_uses, threads.lock_uses) == (1, 9)
    assert replace(state, serial_ns=0, lock_uses=9) == threads


def turns_of(events: int, event_ns: int, idle_ns: int, emitted: int, bursts: bool) -> list[TurnRecord]:
    """30 turns that cost 8 µs, 20 µs more after 10 ms and so much an event; every tenth sends, or all do."""
    found, now_ns = [], 0
    for number in range(30):
        took_ns = 8_000 + 20_000 * idle_ns // 10_000_000 + events * event_ns
        sends = not bursts or number % 10 == 9
        found.append(
            TurnRecord(now_ns, took_ns + (500_000 if bursts and sends else 0), events, emitted * sends)
        )
        now_ns += found[-1].took_ns + idle_ns
    return found


def test_the_turns_of_runs_under_load_tell_costs_and_closings() -> None:
    logs = [
        {
            "in": turns_of(events, 20, idle_ns, events, bursts=False),
            "out": turns_of(events, 60, idle_ns, 5, bursts=True),
        }
        for events, idle_ns in ((40_000, 10_000_000), (4_000, 10_000_000), (100, 1_000_000))
    ]
    by_log = by_turns(found(), logs)
    figures = by_log.figures()
    assert (figures["turn_ns"], figures["cold_turn_ns"]) == pytest.approx((8_000, 20_000), rel=1e-3)
    assert figures["event_ns"] == pytest.approx({"in": 20.0, "out": 60.0}, rel=1e-3)
    assert figures["closing_ns"] == pytest.approx({"out": 500_000.0}, rel=1e-3)
    graph = by_log.graph(1e6)
    assert isinstance(graph.operators[1].selectivity, SimulatedWindow)
    # 20 and 60 ns an event at most, and half a millisecond in so many events
    every = figures["closing_every"]["out"]
    assert by_log.capacity(2) == pytest.approx(2e9 / (20 + 0.5 * 60 + 500_000 / every), rel=1e-3)


def test_sources_share_a_rate() -> None:
    (arrivals,) = found().graph(3e6).arrivals.values()
    assert arrivals.per_second == 3e6  # type: ignore[attr-defined]


# -- predicted and measured ----------------------------------------------------------------------


def test_simulated_runs_have_the_engine_s_limits() -> None:
    run = run_like(Node(block_events=100, max_chunks=3), Lengths(0.5, 1.5))
    assert (run.seconds, run.turn_limit, run.capacity) == (2.0, 200, 300)
    assert run.reads_by_epoch
    assert run.rules == Rules()
    assert run.adaptation == Node(block_events=100, max_chunks=3).adaptation


def test_every_compared_policy_can_be_run() -> None:
    assert set(POLICIES) <= set(systems())


def test_predictions_are_by_policy_and_rate_and_grow_with_the_load() -> None:
    rates = [2e6, 80e6]  # a twentieth of the capacity, and twice as much
    p99_ms = predict(found(), ("state", "min_cost", THREADS), rates, Lengths(0.02, 0.08), processes=1)
    assert list(p99_ms) == ["state", "min_cost", THREADS]
    for by_rate in p99_ms.values():
        assert by_rate[2e6] < by_rate[80e6]
    # With every policy sources wait equally long.
    assert p99_ms["state"][2e6] == pytest.approx(p99_ms["min_cost"][2e6], rel=0.5)


def test_the_highest_rate_lies_where_the_latency_reaches_the_limit() -> None:
    # 10 to 1,000 ms in one doubling: 100 ms after half of it
    rates = highest_rates(PREDICTED, 100.0)
    assert rates == pytest.approx({"a": 1e6 * math.sqrt(2), "b": 1e6 * 2**0.5, "c": 2e6})
    of_rounds = highest_of_rounds({"a": {1e6: [10.0, 200.0], 2e6: [1_000.0, 300.0]}}, 100.0)
    assert of_rounds["a"] == pytest.approx([1e6 * math.sqrt(2), 0.0])
    assert highest_rates({"slow": {1e6: 101.0, 2e6: 50.0}}, 100.0) == {"slow": 0.0}


def test_a_source_that_is_not_read_counts_with_how_far_it_is_behind() -> None:
    run = Paced(1e5, 1e5, 5.0, 40.0, True, metrics(10, 60_000))
    assert latency_ms(run, {"in": 1e5}) == 40.0
    assert latency_ms(replace(run, kept=False), {"in": 1e5}) == pytest.approx(400.0)  # of one second
    assert latency_ms(replace(run, kept=False, p99_ms=900.0), {"in": 1e5}) == 900.0
    assert latency_ms(replace(run, kept=False, p99_ms=math.nan), {"in": 1e5}) == pytest.approx(400.0)


def test_pairs_that_are_the_other_way_round_are_named() -> None:
    order = order_of({"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 5.0, "b": 4.0, "c": 9.0})
    assert (order.pairs, order.reversed_pairs) == (3, (("a", "b"),))
    assert order.agreement == pytest.approx(2 / 3)
    assert math.isnan(order_of({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 2.0}).agreement)  # no pair, no claim
    assert together([order, order]).pairs == 6


def test_the_agreement_is_over_the_pairs_of_all_rates() -> None:
    figures = order_figures(PREDICTED, MEASURED)
    # at 1 M/s medians 6, 8, 80: a < b, a < c, and b and c are predicted alike; at 2 M/s 800, 2000, 50
    assert [rate["pairs"] for rate in figures["by_rate"].values()] == [2, 3]
    assert figures["by_rate"]["2.00 M/s"]["reversed"] == ["a b"]
    assert (figures["agreement"], figures["pairs"]) == (pytest.approx(0.8), 5)


def test_pairs_that_rounds_put_in_different_orders_are_not_clear() -> None:
    order = clear_order(PREDICTED, MEASURED)  # a and b at 1 M/s: 5 > 4, then 6 < 8
    assert (order.pairs, order.reversed_pairs) == (4, (("a", "b"),))


def test_what_other_processes_take_is_told_as_a_share_of_all_cores() -> None:
    before = Usage(5.0, 100.0, 10.0)
    assert before.others_until(Usage(15.0, 118.0, 20.0), cores=2) == pytest.approx(0.4)  # 8 s of 20
    assert before.others_until(Usage(15.0, 109.0, 20.0), cores=2) == 0.0  # clocks differ a little
    assert Usage.now().everyone_s >= Usage.now().own_s


# -- 24 cores ------------------------------------------------------------------------------------


def test_queries_are_scaled_by_workload_policy_and_number() -> None:
    plan = replace(
        SHORT, workloads=("taxi",), scaled_policies=("state", THREADS), queries=(1, 2), scaled_s=0.02
    )
    points = scaled(plan, processes=1)
    figures = scaling_figures(points)
    assert list(figures["taxi"]) == ["state", THREADS]
    assert list(figures["taxi"]["state"]) == ["1", "2"]
    ratio = scaling_ratios(points)["simulated_taxi_2_queries_state_vs_threads"]
    at_two = {policy: of["2"]["throughput"] for policy, of in figures["taxi"].items()}
    assert ratio == at_two["state"] / at_two[THREADS]


def test_the_full_benchmark_is_the_same_with_more() -> None:
    assert set(SHORT.workloads) <= set(FULL.workloads)
    assert set(SHORT.scaled_policies) <= set(FULL.scaled_policies)
    assert {2, 10} <= set(SHORT.queries) <= set(FULL.queries)


def test_figures_are_drawn_and_reported(tmp_path: Path) -> None:
    plan = replace(SHORT, workloads=("taxi",), scaled_policies=("state",), queries=(1,), scaled_s=0.02)
    middle = {"a": {1e6: 6.0, 2e6: 800.0}, "b": {1e6: 8.0, 2e6: 2e3}, "c": {1e6: 80.0, 2e6: 50.0}}
    plots = (
        draw_predictions(PREDICTED, middle, tmp_path / "policies.png"),
        draw_scaling(scaled(plan, processes=1), tmp_path / "queries.png"),
    )
    assert all(Path(plot).stat().st_size > 0 for plot in plots)
    report = Report("simulation", {}, order_figures(PREDICTED, MEASURED), {}, plots)
    assert json.loads(report.json())["figures"]["pairs"] == 5
