"""The figures of the simulation benchmark: predicted over measured, and queries on 24 simulated cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from lab.bench.measuring.plots import saved
from lab.bench.scheduling.systems import LIMIT_MS, THREADS
from lab.bench.simulation.policies import Predicted, highest_rates
from lab.sim.query_scaling import ScalingPoint

_MILLION = 1e6
_MARKERS = "osD^v<>Pph"
_COLOURS = {
    "round_robin": "tab:blue",
    "min_cost": "tab:orange",
    "first_come": "tab:green",
    "congestion": "tab:purple",
    "min_latency": "tab:brown",
    "highest_rate": "tab:cyan",
}


def draw_predictions(predicted: Predicted, measured: Predicted, path: Path) -> str:
    """Latencies at every rate, and the rates at which they reach the limit; a point for each policy."""
    figure, (latency, rate) = plt.subplots(1, 2, figsize=(11.5, 5.2))
    rates_predicted, rates_measured = highest_rates(predicted), highest_rates(measured)
    for number, (policy, by_rate) in enumerate(predicted.items()):
        style: dict[str, Any] = {
            "marker": _MARKERS[number % len(_MARKERS)],
            "label": policy,
            **_style(policy),
        }
        found = sorted(by_rate)
        latency.plot([measured[policy][r] for r in found], [by_rate[r] for r in found], "--", **style)
        rate.plot(
            rates_measured[policy] / _MILLION,
            rates_predicted[policy] / _MILLION,
            **{**style, "linestyle": ""},
        )
    every = [
        ms for figures in (predicted, measured) for by_rate in figures.values() for ms in by_rate.values()
    ]
    latency.plot([min(every), max(every)], [min(every), max(every)], ":", color="grey")
    latency.set_xscale("log")
    latency.set_yscale("log")
    latency.set_xlabel("measured 99th percentile of latency (ms)")
    latency.set_ylabel("predicted 99th percentile of latency (ms)")
    latency.set_title("at each rate, from low to high along a line")
    top = max([*rates_predicted.values(), *rates_measured.values()]) / _MILLION
    rate.plot([0, top], [0, top], ":", color="grey")
    rate.set_xlabel(f"measured highest rate with p99 ≤ {LIMIT_MS:.0f} ms (M events/s)")
    rate.set_ylabel("predicted highest rate (M events/s)")
    rate.set_title("by interpolation between the rates")
    latency.legend(fontsize=8)
    return saved(figure, "Policies on 2 threads, simulated and run: the mix of ten queries", path)


def draw_scaling(points: Sequence[ScalingPoint], path: Path) -> str:
    """Throughput above latency over the number of queries, one column for each workload (enjima fig. 5)."""
    workloads = list(dict.fromkeys(point.workload for point in points))
    figure, axes = plt.subplots(2, len(workloads), figsize=(5 * len(workloads), 7), squeeze=False)
    for column, workload in enumerate(workloads):
        of_workload = sorted(
            (point for point in points if point.workload == workload), key=lambda point: point.queries
        )
        by_policy: dict[str, list[ScalingPoint]] = {}
        for point in of_workload:
            by_policy.setdefault(point.policy, []).append(point)
        _column(axes[:, column], by_policy)
        axes[0, column].set_title(workload)
    axes[0, 0].legend(fontsize=8)
    return saved(figure, "Queries on 24 cores, simulated with chosen costs", path)


def _column(axes: Any, by_policy: Mapping[str, Sequence[ScalingPoint]]) -> None:
    throughput, latency = axes
    for number, (policy, line) in enumerate(by_policy.items()):
        style: dict[str, Any] = {
            "marker": _MARKERS[number % len(_MARKERS)],
            "label": policy,
            **_style(policy),
        }
        queries = [point.queries for point in line]
        throughput.plot(queries, [point.throughput / _MILLION for point in line], **style)
        latency.plot(queries, [point.mean_ms for point in line], **style)
    line = next(iter(by_policy.values()))
    offered = [point.offered / _MILLION for point in line]
    throughput.plot([point.queries for point in line], offered, ":", color="grey", label="asked for")
    throughput.set_ylabel("throughput (M events/s)")
    latency.set_ylabel("mean latency (ms)")
    latency.set_yscale("log")
    for axis in axes:
        axis.set_xlabel("queries")


def _style(policy: str) -> dict[str, Any]:
    """The two that everything is about stand out."""
    if policy == "state":
        return {"color": "tab:red", "linewidth": 2.2}
    if policy == THREADS:
        return {"color": "black", "linewidth": 2.2}
    return {"color": _COLOURS[policy], "linewidth": 1.0, "alpha": 0.8} if policy in _COLOURS else {}
