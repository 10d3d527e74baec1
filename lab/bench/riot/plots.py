"""The figures of EdgeWise's evaluation, drawn from runs on this machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from lab.bench.measuring.plots import saved
from lab.bench.riot.operators import OperatorFigures
from lab.bench.riot.runs import RatePoint

_LIMIT_MS = 100
_NAMES = {"congestion": "congestion-aware, 2 workers", "threads": "a thread per operator"}
_COLOURS = {"congestion": "tab:blue", "threads": "tab:orange"}
_SHADES = {"low": 0.35, "medium": 0.65, "high": 1.0}


def draw_curves(curves: Mapping[str, Mapping[str, Sequence[RatePoint]]], path: Path) -> str:
    """Figure 7: latency over throughput, a panel for each topology."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 8))
    for panel, (topology, systems) in zip(axes.flat, curves.items(), strict=True):
        for system, points in systems.items():
            rows = [point.published_per_s for point in points]
            colour = _COLOURS[system]
            panel.plot(rows, [p.mean_ms for p in points], "o-", color=colour, label=f"{_NAMES[system]}, mean")
            panel.plot(rows, [p.p99_ms for p in points], "s--", color=colour, label=f"{_NAMES[system]}, p99")
        _latency_axes(panel, "throughput (rows published per second)")
        panel.set_title(topology.upper())
    axes.flat[0].legend(fontsize="small")
    return saved(figure, "Throughput and latency (EdgeWise figure 7)", path)


def draw_consumption(rules: Mapping[str, Sequence[RatePoint]], path: Path) -> str:
    """Figure 11: what a turn takes of its queue."""
    figure, panel = plt.subplots(figsize=(8, 5.5))
    for rule, points in rules.items():
        rows = [point.published_per_s for point in points]
        style = "s--" if rule == _NAMES["threads"] else "o-"
        panel.plot(rows, [point.p99_ms for point in points], style, label=rule)
    _latency_axes(panel, "throughput (rows published per second)")
    panel.set_ylabel("latency p99 (ms)")
    panel.legend(title="a turn takes")
    return saved(figure, "Consumption rules on STATS (EdgeWise figure 11)", path)


def draw_variation(curves: Mapping[str, Mapping[str, Sequence[RatePoint]]], path: Path) -> str:
    """Figure 8: how unevenly operators are used, over the rate."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 8))
    for panel, (topology, systems) in zip(axes.flat, curves.items(), strict=True):
        for system, points in systems.items():
            rates = [point.rate for point in points]
            variation = [point.utilisation_variation for point in points]
            panel.plot(rates, variation, "o-", color=_COLOURS[system], label=_NAMES[system])
        panel.set_xlabel("input rate (messages per second)")
        panel.set_ylabel("coefficient of variation of utilisation")
        panel.set_ylim(bottom=0)
        panel.set_title(topology.upper())
    axes.flat[0].legend(fontsize="small")
    return saved(figure, "How unevenly operators are used (EdgeWise figure 8)", path)


def draw_queues(queues: Mapping[str, Mapping[str, Mapping[str, OperatorFigures]]], path: Path) -> str:
    """Figures 9 and 10: time in the queue of each operator of PRED, at three rates."""
    figure, axes = plt.subplots(1, len(queues), figsize=(13, 5.5), sharey=True, squeeze=False)
    for panel, (system, levels) in zip(axes.flat, queues.items(), strict=True):
        width = 0.8 / max(1, len(levels))
        for place, (level, operators) in enumerate(levels.items()):
            heights = [0.0 if math.isnan(of.queue_ms) else of.queue_ms for of in operators.values()]
            lefts = [number + (place - (len(levels) - 1) / 2) * width for number in range(len(operators))]
            panel.bar(lefts, heights, width, color=_COLOURS[system], alpha=_SHADES[level], label=level)
            panel.set_xticks(range(len(operators)), list(operators), rotation=30, ha="right")
        panel.set_xlabel("operator")
        panel.set_ylabel("mean time in its queue, T_Q (ms)")
        panel.set_title(_NAMES[system])
        panel.legend(title="input rate")
    return saved(figure, "Queueing in PRED (EdgeWise figures 9 and 10)", path)


def _latency_axes(panel: Axes, x: str) -> None:
    panel.axhline(_LIMIT_MS, color="grey", linewidth=0.8, linestyle=":")
    panel.set_xlabel(x)
    panel.set_ylabel("latency (ms)")
    panel.set_yscale("log")
