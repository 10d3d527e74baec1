"""The benchmark of skew, small: its ratios come from its runs, and its figures are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.baselines.routing.catalogue import GROUPINGS
from lab.bench.catalogue import BENCHMARKS
from lab.bench.skew import simulated as skew_simulated
from lab.bench.skew.costs import SkewCosts
from lab.bench.skew.plots import (
    draw_bottleneck,
    draw_changing,
    draw_chi,
    draw_heavy,
    draw_imbalance,
    draw_latency,
    draw_measured,
)
from lab.bench.skew.simulated import SkewExtent, changing, counts, heavy, items_of, latencies

COSTS = SkewCosts(ledger_ns=50_000.0, count_ns=100.0, merge_ns=80.0, rank_ns=400.0, moved_ns=50.0)
SMALL = SkewExtent(batches=8, batch_rows=5_000, counted_batches=4, counted_rows=2_000, latency_s=1.0)


@pytest.fixture(autouse=True)
def _few_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skew_simulated, "SEEDS", 3)


def test_a_heavy_function_gains_on_skewed_keys_and_loses_nothing_on_even_ones() -> None:
    skewed = heavy(SMALL, COSTS, 0.2, 1.0, items_of(1.0, 40_000))
    assert skewed["throughput_vs_hash"] > 1.2
    assert skewed["migrations"] >= 1
    assert skewed["lit_after"] < skewed["lit_before"]
    even = heavy(SMALL, COSTS, 0.2, 0.0, items_of(0.0, 40_000))
    assert even["throughput_vs_hash"] == pytest.approx(1.0, abs=0.1)


def test_counts_are_simulated_for_every_grouping_with_and_without_partial_aggregation() -> None:
    found = counts(SMALL, COSTS.commcount, items_of(1.0, 8_000))
    assert set(found) == {f"{name}{suffix}" for name in GROUPINGS for suffix in ("", "+partial")}
    assert found["hash"]["merged_per_event"] == 0 < found["shuffle"]["merged_per_event"]
    assert found["hash+partial"]["sent_per_event"] < found["hash"]["sent_per_event"] == 1.0


def test_its_figures_are_drawn(tmp_path: Path) -> None:
    keys = items_of(1.0, 40_000)
    by_zipf = {
        "0.5": heavy(SMALL, COSTS, 0.2, 0.5, items_of(0.5, 40_000)),
        "1.0": heavy(SMALL, COSTS, 0.2, 1.0, keys),
    }
    counted = {"1.0": counts(SMALL, COSTS.top_n, keys)}
    waits = {"1.0": latencies(SMALL, COSTS.top_n, keys)}
    measured = {"node engine": {"1.0": {"events_per_s": 2.0, "hash_events_per_s": 1.0}}}
    drawn = [
        draw_imbalance(by_zipf, tmp_path / "7.png"),
        draw_heavy(by_zipf, tmp_path / "heavy.png"),
        draw_bottleneck(counted, "Top_N", 9, tmp_path / "9.png"),
        draw_latency(waits, "Top_N", 11, tmp_path / "11.png"),
        draw_chi({"1.0": by_zipf}, tmp_path / "chi.png"),
        draw_changing(changing(SMALL, COSTS, 0.2), tmp_path / "changing.png"),
        draw_measured(measured, tmp_path / "measured.png"),
    ]
    assert all(Path(path).stat().st_size > 5_000 for path in drawn)


def test_it_is_in_the_catalogue() -> None:
    assert BENCHMARKS["skew"][0] == "lab.bench.skew.bench"
