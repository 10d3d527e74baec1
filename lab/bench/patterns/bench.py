"""Patterns: what splitting costs, and what a second instance gains (buffer limits figure 8(f))."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from lab.bench.measuring.plots import saved
from lab.bench.measuring.report import Options, Report, median, progress
from lab.bench.patterns.by_start import TASKS, WITHIN, measure_by_start
from lab.bench.patterns.detection import (
    SIMULATED,
    WORKERS,
    measure_costs,
    measure_detection,
    simulate,
    speedup,
    workload,
)
from lab.bench.patterns.splitter import (
    BATCH,
    INSTANCES,
    OVERLAPS,
    WINDOW,
    measure_families,
    measure_literally,
    measure_windows,
)

_LITERAL = (1, 10, 100)


def run(options: Options) -> Report:
    """The splitter on one thread, then detection on the node engine."""
    batches, rounds = (200, 5) if options.full else (40, 3)
    windows = measure_windows(batches, rounds)
    families = measure_families(batches, rounds)
    literally = {overlap: measure_literally(2_000, overlap) for overlap in _LITERAL}
    for overlap, rate in windows.items():
        progress(f"patterns: {overlap:,} overlapping windows: the splitter takes {rate:,.0f} events/s")
    traffic = workload(3_000.0 if options.full else 1_500.0, 2.0)
    measured = measure_detection(traffic, 15 if options.full else 7)
    trades = 200_000 if options.full else 50_000
    by_start = measure_by_start(trades, 11 if options.full else 5)
    costs = measure_costs(traffic)
    simulated = simulate(costs, len(traffic))
    one_open = min(windows[1], *families.values())
    out = options.out
    return Report(
        name="patterns",
        settings={
            "window_events": WINDOW,
            "batch_events": BATCH,
            "splitter_instances": INSTANCES,
            "detection_events": len(traffic),
            "detection_workers": WORKERS,
            "match_events": trades,
            "match_within": WITHIN,
            "match_tasks": TASKS,
            "simulated_costs_measured_here": {
                "splitter_s": costs.splitter_s,
                "merger_s": costs.merger_s,
                "comparison_ns": 1e9 * costs.selections_s / costs.comparisons,
            },
        },
        figures={
            # the slowest of all that have one open selection
            "splitter_events_per_s_1": one_open,
            "splitter_events_per_s": {str(overlap): rate for overlap, rate in windows.items()},
            "splitter_events_per_s_by_family": families,
            "splitter_events_per_s_literally": {str(n): rate for n, rate in literally.items()},
            "detection_events_per_s": {str(degree): median(rates) for degree, rates in measured.items()},
            "detection_events_per_s_simulated": {str(degree): simulated[degree] for degree in SIMULATED},
            "match_events_per_s": {name: median(rates) for name, rates in by_start.items()},
        },
        ratios={
            "speedup_2_over_1": speedup(measured),
            # of a pattern without a key: two instances over one, and one over no splitter and no merger
            "match_speedup_2_over_1": _ratio(by_start["2"], by_start["1"]),
            "match_1_over_sequential": _ratio(by_start["1"], by_start["sequential"]),
            "splitter_10000_over_1": windows[OVERLAPS[-1]] / windows[1],
            "splitter_literally_100_over_1": literally[100] / literally[1],
        },
        plots=(
            _draw_splitter(windows, literally, out / "patterns-figure-8f.png"),
            _draw_detection(measured, simulated, out / "patterns-detection.png"),
        ),
    )


def _ratio(ours: list[float], theirs: list[float]) -> float:
    """The median over rounds, each with its own pair."""
    return median([one / other for one, other in zip(ours, theirs, strict=True)])


def _draw_splitter(windows: dict[int, float], literally: dict[int, float], path: Path) -> str:
    figure, panel = plt.subplots(figsize=(7, 4.5))
    panel.plot(list(windows), list(windows.values()), marker="o", label="families")
    panel.plot(list(literally), list(literally.values()), marker="s", label="predicates called one by one")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("overlapping windows of 10,000 events")
    panel.set_ylabel("events a second")
    panel.legend()
    return saved(figure, "Throughput of the splitter (figure 8(f))", path)


def _draw_detection(measured: dict[int, list[float]], simulated: dict[int, float], path: Path) -> str:
    figure, panel = plt.subplots(figsize=(7, 4.5))
    panel.plot(list(simulated), list(simulated.values()), marker="o", linestyle="--", label="simulated")
    panel.plot(list(measured), [median(rates) for rates in measured.values()], marker="s", label="measured")
    panel.set_xlabel("degree")
    panel.set_ylabel("events a second")
    panel.legend()
    return saved(figure, "Detection over the degree", path)
