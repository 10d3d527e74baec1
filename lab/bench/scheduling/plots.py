"""The figures of the scheduling benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from lab.bench.measuring.rates import Paced, interval
from lab.bench.scheduling.ablation import Throughput
from lab.bench.scheduling.curves import Curves
from lab.bench.scheduling.steps import Steps
from lab.bench.scheduling.systems import LIMIT_MS, THREADS

_MILLION = 1e6
_MARKERS = "osD^v<>Pph"


def draw_curves(curves: Curves, path: Path) -> str:
    """Throughput above latency, one column for each workload."""
    figure, axes = plt.subplots(2, len(curves), figsize=(4 * len(curves), 7), sharex="col", squeeze=False)
    for column, (workload, by_system) in enumerate(curves.items()):
        for number, (system, points) in enumerate(by_system.items()):
            counts = sorted(points)
            style = {"label": system, "marker": _MARKERS[number % len(_MARKERS)], **_style(system)}
            axes[0, column].plot(counts, [points[n].achieved / _MILLION for n in counts], **style)
            axes[1, column].plot(counts, [points[n].mean_ms for n in counts], **style)
        any_system = next(iter(by_system.values()))
        counts = sorted(any_system)
        asked = [any_system[n].asked / _MILLION for n in counts]
        axes[0, column].plot(counts, asked, ":", color="black", label="asked for")
        axes[0, column].set_title(workload)
        axes[0, column].set_ylabel("throughput (M events/s)")
        axes[1, column].set_ylabel("mean latency (ms)")
        axes[1, column].set_yscale("log")
        for row in (0, 1):
            axes[row, column].set_xlabel("queries")
    axes[0, 0].legend(fontsize=7)
    return _saved(figure, "Queries on 2 workers; the rate of a query stays the same", path)


def draw_rates(highest: Mapping[str, Sequence[float]], path: Path) -> str:
    """The highest rate of every system on the mix."""
    figure, axis = plt.subplots(figsize=(8, 4.5))
    names = sorted(highest, key=lambda name: interval(highest[name])[0], reverse=True)
    _bars(axis, list(range(len(names))), [highest[name] for name in names], 0.7, None)
    axis.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axis.set_xlabel("system")
    axis.set_ylabel(f"highest rate with p99 ≤ {LIMIT_MS:.0f} ms (M events/s)")
    return _saved(figure, "The mix on 2 workers; one run where there is no interval", path)


def draw_ablation(found: Throughput, path: Path) -> str:
    """Bars with intervals, a group for each hand-over size; cases with one size are told in the report."""
    found = {case: by_size for case, by_size in found.items() if len(by_size) > 1} or found
    figure, axes = plt.subplots(1, len(found), figsize=(5.5 * len(found), 4.5), squeeze=False)
    for axis, (case, by_size) in zip(axes[0], found.items(), strict=True):
        names = list(next(iter(by_size.values())))
        for number, system in enumerate(names):
            places = [group + (number - 1.5) * 0.2 for group in range(len(by_size))]
            _bars(axis, places, [by_size[size][system] for size in by_size], 0.18, system)
        axis.set_xticks(range(len(by_size)), [f"{size:,}" for size in by_size])
        axis.set_xlabel("events of a hand-over")
        axis.set_ylabel("throughput (M events/s)")
        axis.set_yscale("log")
        axis.set_title(case.replace("_", " ") + " queries")
        axis.legend()
    return _saved(figure, "Threads or state-based scheduling, on queues or on blocks", path)


def draw_shares(at_share: Mapping[str, Mapping[float, Sequence[Paced]]], path: Path) -> str:
    """Latency at parts of one load, which is the highest rate of the default."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5))
    for axis, quantile in zip(axes, ("p50_ms", "p99_ms"), strict=True):
        for system, by_share in at_share.items():
            shares = sorted(by_share)
            spreads = [interval([getattr(run, quantile) for run in by_share[share]]) for share in shares]
            means = [mean for mean, _, _ in spreads]
            errors = [high - mean for mean, _, high in spreads]
            percent = [100 * share for share in shares]
            axis.errorbar(percent, means, errors, marker="o", capsize=4, label=system, **_style(system))
        axis.set_xlabel("load (% of the highest rate of the default policy)")
        axis.set_ylabel(f"{quantile[1:3]}th percentile of latency (ms)")
        axis.set_yscale("log")
        axis.legend()
    return _saved(figure, "Latency at parts of one load on the mix", path)


def draw_steps(steps: Steps, path: Path) -> str:
    """Throughput and latency over time, a column for each experiment."""
    figure, axes = plt.subplots(2, len(steps), figsize=(5 * len(steps), 7), sharex="col", squeeze=False)
    for column, (experiment, by_system) in enumerate(steps.items()):
        for system, samples in by_system.items():
            times = [sample.at_s for sample in samples]
            achieved = [sample.achieved / _MILLION for sample in samples]
            axes[0, column].plot(times, achieved, label=system, **_style(system))
            axes[1, column].plot(times, [s.mean_ms for s in samples], label=system, **_style(system))
        asked = next(iter(by_system.values()))
        rates = [sample.asked / _MILLION for sample in asked]
        axes[0, column].plot([sample.at_s for sample in asked], rates, ":", color="black", label="asked for")
        axes[0, column].set_title(experiment.replace("_", " of ", 1))
        axes[0, column].set_ylabel("throughput (M events/s)")
        axes[1, column].set_ylabel("mean latency (ms)")
        axes[1, column].set_yscale("log")
        for row in (0, 1):
            axes[row, column].set_xlabel("time (s)")
    axes[0, 0].legend()
    return _saved(figure, "Sudden changes of the input rate and of the filter's selectivity; 6 queries", path)


def _bars(
    axis: Any, places: Sequence[float], values: Sequence[Sequence[float]], width: float, label: str | None
) -> None:
    spreads = [interval(found) for found in values]
    heights = [mean / _MILLION for mean, _, _ in spreads]
    errors = [(high - mean) / _MILLION for mean, _, high in spreads]
    axis.bar(places, heights, width, yerr=errors, capsize=3, label=label)


def _style(system: str) -> dict[str, Any]:
    """The two that everything is about stand out."""
    if system == "state":
        return {"color": "tab:red", "linewidth": 2.2}
    if system == THREADS:
        return {"color": "black", "linewidth": 2.2}
    return {"linewidth": 1.2, "alpha": 0.8}


def _saved(figure: Any, title: str, path: Path) -> str:
    figure.suptitle(title)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return str(path)
