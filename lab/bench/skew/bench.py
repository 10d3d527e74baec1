"""Skew: two-tier routing against hashing and the groupings that split keys, on 16 simulated tasks and on two
measured workers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lab.baselines.routing.catalogue import DEFAULT_PARTITIONS_PER_TASK
from lab.bench.measuring.report import Options, Report, progress
from lab.bench.skew.costs import measure_costs
from lab.bench.skew.measured import WORKERS, MeasuredPlan, measure_node, measure_spark
from lab.bench.skew.plots import (
    draw_bottleneck,
    draw_changing,
    draw_chi,
    draw_heavy,
    draw_imbalance,
    draw_latency,
    draw_measured,
)
from lab.bench.skew.simulated import (
    CHI,
    ITEMS,
    LATENCY_RATE,
    LATENCY_USE,
    SEEDS,
    TASKS,
    ZIPF,
    SkewExtent,
    changing,
    counts,
    heavy_over_zipf,
    items_of,
    latencies,
    over_chi,
)
from penstock.routing.rebalancer import DEFAULT_CHI

ROUNDS = 200  # the work of the heavy function
DEFAULT, FULL = SkewExtent(), SkewExtent(40, 100_000, 20, 50_000, 10.0)
FULL_MEASURED = MeasuredPlan(
    200_000, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5), 9, 1, 24, 20_000, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5), 3
)
HEADLINE = "1.0"  # the Zipf coefficient of the ratios


def run(options: Options) -> Report:
    """Simulates with costs measured here, then measures both runtimes."""
    plan = FULL if options.full else DEFAULT
    costs = measure_costs(ROUNDS)
    progress(f"skew: an event of the heavy function costs {costs.ledger_ns / 1e3:.1f} µs; {costs}")
    by_zipf = heavy_over_zipf(plan, costs, DEFAULT_CHI)
    by_chi = {zipf: over_chi(plan, costs, float(zipf)) for zipf in ("0.8", "1.0")}
    applications: dict[str, dict[str, Any]] = {"COMMCOUNT": {}, "Top_N": {}}
    waits: dict[str, dict[str, Any]] = {"COMMCOUNT": {}, "Top_N": {}}
    for zipf in ZIPF:
        keys = items_of(zipf, plan.batches * plan.batch_rows)
        for name, of in (("COMMCOUNT", costs.commcount), ("Top_N", costs.top_n)):
            applications[name][str(zipf)] = counts(plan, of, keys)
            waits[name][str(zipf)] = latencies(plan, of, keys)
        progress(f"skew: Zipf {zipf}: counts of every grouping simulated")
    over_time = changing(plan, costs, DEFAULT_CHI)
    measuring = FULL_MEASURED if options.full else MeasuredPlan()
    measured = {
        "node engine": measure_node(measuring, ROUNDS, DEFAULT_CHI),
        "Spark": measure_spark(measuring, ROUNDS, DEFAULT_CHI),
    }
    headline = by_zipf[HEADLINE]
    out = options.out
    return Report(
        name="skew",
        settings={
            "tasks_simulated": TASKS,
            "items": ITEMS,
            "zipf": list(ZIPF),
            "hash_seeds": SEEDS,
            "chi": DEFAULT_CHI,
            "chi_swept": list(CHI),
            "virtual_partitions": TASKS * DEFAULT_PARTITIONS_PER_TASK,
            "costs_measured_here": asdict(costs),
            "latency_rate": LATENCY_RATE,
            "latency_scaled_to_use": LATENCY_USE,
            "plan": asdict(plan),
            "measured_workers": WORKERS,
            "measured_plan": asdict(measuring),
        },
        figures={
            "migrations": headline["migrations"],
            "lit_before": headline["lit_before"],
            "lit_after": headline["lit_after"],
            "lit_expected": headline["lit_expected"],
            "heavy_by_zipf": by_zipf,
            "heavy_by_chi": by_chi,
            "counts": applications,
            "latency_ms": waits,
            "changing": over_time,
            "measured": measured,
        },
        ratios={
            "throughput_vs_hash": headline["throughput_vs_hash"],
            "of_bound": headline["of_bound"],
            "whole_run_vs_hash": headline["whole_run_vs_hash"],
            "node_throughput_vs_hash_zipf_1.5": measured["node engine"]["1.5"]["throughput_vs_hash"],
            "spark_cpu_throughput_vs_hash_zipf_1.5": measured["Spark"]["1.5"]["cpu_throughput_vs_hash"],
        },
        plots=(
            draw_imbalance(by_zipf, out / "skew-figure-7.png"),
            draw_bottleneck(applications["COMMCOUNT"], "COMMCOUNT", 8, out / "skew-figure-8.png"),
            draw_bottleneck(applications["Top_N"], "Top_N", 9, out / "skew-figure-9.png"),
            draw_latency(waits["COMMCOUNT"], "COMMCOUNT", 10, out / "skew-figure-10.png"),
            draw_latency(waits["Top_N"], "Top_N", 11, out / "skew-figure-11.png"),
            draw_heavy(by_zipf, out / "skew-heavy.png"),
            draw_chi(by_chi, out / "skew-chi.png"),
            draw_changing(over_time, out / "skew-changing.png"),
            draw_measured(measured, out / "skew-measured.png"),
        ),
    )
