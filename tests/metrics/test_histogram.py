"""The latency histogram knows quantiles to about two percent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metrics.histogram import LatencyHistogram
from penstock.metrics.operators import OperatorMetrics


def test_an_empty_histogram_knows_nothing() -> None:
    empty = LatencyHistogram().snapshot()
    assert empty.count == 0
    assert math.isnan(empty.mean_ms)
    assert math.isnan(empty.quantile_ms(0.5))


@given(st.lists(st.integers(1_000, 10**10), min_size=1, max_size=200), st.floats(0.01, 1.0))
def test_quantiles_are_right_to_two_percent(durations: list[int], q: float) -> None:
    histogram = LatencyHistogram()
    for duration in durations:
        histogram.record(duration)
    exact = sorted(durations)[max(1, math.ceil(q * len(durations))) - 1] / 1e6
    assert histogram.snapshot().quantile_ms(q) == pytest.approx(exact, rel=0.021)


def test_a_snapshot_does_not_change_with_later_records() -> None:
    histogram = LatencyHistogram()
    histogram.record(1_000_000)
    before = histogram.snapshot()
    histogram.record(9_000_000)
    assert before.count == 1
    assert not before.counts.flags.writeable
    assert histogram.snapshot().mean_ms == 5.0


def test_two_snapshots_add_up() -> None:
    first, second = LatencyHistogram(), LatencyHistogram()
    first.record(1_000_000)
    second.record(3_000_000)
    both = first.snapshot() + second.snapshot()
    assert (both.count, both.mean_ms, both.largest_ns) == (2, 2.0, 3_000_000)
    assert np.array_equal(both.counts, (second.snapshot() + first.snapshot()).counts)


def test_operator_metrics_derive_cost_selectivity_and_the_three_times() -> None:
    metrics = OperatorMetrics(
        id="f",
        kind="filter",
        pending=0,
        processed=1_000,
        emitted=250,
        turns=10,
        busy_ns=50_000,
        backpressured=0,
        blocks_in_use=1,
        late=0,
        state_bytes=0,
        schedule_wait_ns=20_000_000,
        markers=2,
        marker_wait_ns=10_000_000,
    )
    assert metrics.cost_ns == 50.0
    assert metrics.selectivity == 0.25
    assert metrics.schedule_ms == 2.0
    assert metrics.queue_ms == 3.0  # a marker waits T_Q + T_S = 5 ms
    assert metrics.compute_ms == 5e-05
