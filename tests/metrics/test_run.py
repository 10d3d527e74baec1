"""A run's metrics: utilisation and its variation by hand, shares, and what came after a warm-up."""

from __future__ import annotations

import math
from typing import Any

import pytest

from penstock.metrics.histogram import LatencyHistogram
from penstock.metrics.operators import OperatorCounters, OperatorMetrics
from penstock.metrics.rebinding import RebindMetrics
from penstock.metrics.run import RunMetrics


def operator(name: str, kind: str = "filter", **counts: int) -> OperatorMetrics:
    given: dict[str, Any] = dict.fromkeys(
        (
            "pending",
            "processed",
            "emitted",
            "turns",
            "busy_ns",
            "backpressured",
            "blocks_in_use",
            "late",
            "state_bytes",
            "schedule_wait_ns",
            "markers",
            "marker_wait_ns",
        ),
        0,
    )
    return OperatorMetrics(id=name, kind=kind, **{**given, **counts})


def test_utilisation_is_the_share_of_time_in_which_the_queue_was_not_empty() -> None:
    # of 1,000 ns it ran for 200, had waited 250 for its turns, and now waits for 50: T_emptyQ is 500
    one = operator("f", busy_ns=200, schedule_wait_ns=250, open_wait_ns=50, elapsed_ns=1_000)
    assert one.utilisation == 0.5
    assert math.isnan(operator("f").utilisation)


def test_utilisation_is_that_of_equation_8_with_the_mean_time_per_event() -> None:
    # N = 40 events, each of which took T_E = (200 + 250 + 50) / 40 = 12.5 ns, waiting for turns included
    one = operator("f", processed=40, busy_ns=200, schedule_wait_ns=250, open_wait_ns=50, elapsed_ns=1_000)
    assert one.utilisation == 12.5 * one.processed / 1_000


def test_the_variation_of_utilisation_is_over_all_operators_but_sources() -> None:
    shares = [operator(f"f{busy}", busy_ns=busy, elapsed_ns=100) for busy in (20, 40, 60)]
    source = operator("s", "source", busy_ns=100, elapsed_ns=100)
    run = RunMetrics(1e-7, (source, *shares), {})
    assert run.utilisation == {"f20": 0.2, "f40": 0.4, "f60": 0.6}
    assert run.utilisation_variation == pytest.approx(math.sqrt(0.08 / 3) / 0.4)


def test_decisions_are_a_share_of_the_time_inside_turns() -> None:
    run = RunMetrics(1.0, (operator("f", busy_ns=4_000), operator("g", busy_ns=6_000)), {}, decision_ns=50)
    assert run.decision_share == 0.005


def test_what_came_after_a_warm_up() -> None:
    histogram = LatencyHistogram()
    histogram.record(5_000_000)
    first = operator("f", processed=10, busy_ns=100, schedule_wait_ns=60, open_wait_ns=20, elapsed_ns=500)
    early = RunMetrics(5e-7, (first,), {"q": histogram.snapshot()}, decision_ns=7)
    histogram.record(1_000_000)
    # the wait that was open then lasted 50 in all: 20 of it lie before
    last = operator("f", pending=3, processed=30, busy_ns=300, schedule_wait_ns=110, elapsed_ns=1_000)
    after = RunMetrics(1e-6, (last,), {"q": histogram.snapshot()}, decision_ns=9).since(early)
    assert (after["f"].processed, after["f"].pending, after.decision_ns) == (20, 3, 2)
    assert after["f"].utilisation == (200 + 50 - 20) / 500
    assert after.latency["q"].count == 1
    assert after.latency["q"].mean_ms == 1.0


def test_rebinds_of_a_warm_up_do_not_count() -> None:
    early = RunMetrics(1.0, (), {}, rebinding=RebindMetrics(7, 1, 700, 90, 20, 3, 50))
    end = RunMetrics(3.0, (), {}, rebinding=RebindMetrics(9, 1, 1_000, 200, 25, 3, 80))
    assert end.since(early).rebinding == RebindMetrics(2, 0, 300, 200, 5, 0, 30)
    assert end.since(RunMetrics(1.0, (), {})).rebinding == end.rebinding
    assert RunMetrics(3.0, (), {}).since(RunMetrics(1.0, (), {})).rebinding is None


def test_a_turn_counts_the_wait_before_it_if_that_is_known() -> None:
    counters = OperatorCounters()
    counters.record_turn(100, 150, 10, ready_since_ns=70)
    counters.record_turn(200, 250, 10)
    assert (counters.schedule_wait_ns, counters.busy_ns, counters.turns) == (30, 100, 2)
