"""Figures 7 and 8(a) to 8(e) of the buffer limits paper, from simulated runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt

from lab.bench.degree.bounds import Bounded
from lab.bench.degree.runs import REQUIREMENT, DegreeRun
from lab.bench.measuring.plots import saved
from penstock.scaling.profiles import OperatorProfile

_NAMES = {
    "qt_400": "queueing theory, slices of 400",
    "qt_1600": "queueing theory, slices of 1,600",
    "qt_400_naive": "the same with the naive forecast, 400",
    "qt_1600_naive": "the same with the naive forecast, 1,600",
    "cpu": "CPU rule",
}
_COLOURS = {
    "qt_400": "tab:blue",
    "qt_1600": "tab:green",
    "qt_400_naive": "tab:cyan",
    "qt_1600_naive": "tab:olive",
    "cpu": "tab:red",
}
_SAMPLED_S = 10.0


def draw_queues(runs: Mapping[str, DegreeRun], path: Path, which: str) -> str:
    """The share of samples, every 10 s, in which the queue was no longer than x."""
    figure, panel = plt.subplots(figsize=(8, 5))
    for name, run in runs.items():
        lengths = np.sort(run.queue.sampled(_SAMPLED_S))
        shares = np.arange(1, len(lengths) + 1) / len(lengths)
        panel.step(lengths + 1, shares, where="post", color=_COLOURS[name], label=_NAMES[name])
    panel.axvline(REQUIREMENT.limit + 1, color="grey", linestyle=":", label="buffer limit")
    panel.axhline(REQUIREMENT.probability, color="grey", linestyle="--", label="required probability")
    panel.set_xscale("log")
    panel.set_xlabel("events in the splitter's queue + 1")
    panel.set_ylabel("share of samples")
    panel.legend(fontsize="small", loc="lower right")
    return saved(figure, f"Queue lengths (figure {which})", path)


def draw_degrees(runs: Mapping[str, DegreeRun], path: Path, which: str) -> str:
    """The observed degree over time."""
    figure, panel = plt.subplots(figsize=(10, 5))
    for name, run in runs.items():
        hours = [step.at_s / 3600.0 for step in run.outcome.degrees] + [run.outcome.arrived_s[-1] / 3600.0]
        degrees = [step.observed for step in run.outcome.degrees]
        panel.step(hours, [*degrees, degrees[-1]], where="post", color=_COLOURS[name], label=_NAMES[name])
    panel.set_xlabel("time (h)")
    panel.set_ylabel("registered instances")
    panel.set_ylim(bottom=0)
    panel.legend(fontsize="small")
    return saved(figure, f"Degree (figure {which})", path)


def draw_bounds(found: Mapping[str, Bounded], path: Path) -> str:
    """Figure 8(e): queues under distributions that were bounded."""
    figure, panel = plt.subplots(figsize=(8, 5))
    for name, one in found.items():
        lengths = np.sort(one.queue.sampled(1.0))
        label = f"{name.replace('_', ' ')}, degree {one.degree}"
        panel.step(lengths, np.arange(1, len(lengths) + 1) / len(lengths), where="post", label=label)
    panel.axvline(REQUIREMENT.limit, color="grey", linestyle=":", label="buffer limit")
    panel.axhline(REQUIREMENT.probability, color="grey", linestyle="--", label="required probability")
    panel.set_xlabel("events in the queue")
    panel.set_ylabel("share of samples")
    panel.legend(fontsize="small")
    return saved(figure, "Approximated distributions (figure 8(e))", path)


def draw_profile(profile: OperatorProfile, path: Path) -> str:
    """Figure 7: service time over the rate."""
    figure, panel = plt.subplots(figsize=(7, 4.5))
    rates = [entry.rate for entry in profile.entries]
    for name in (50, 99):
        times = [entry.percentiles_s[name] for entry in profile.entries]
        panel.plot(rates, times, marker="o", label=f"{name}th percentile")
    panel.set_xlabel("cars a second")
    panel.set_ylabel("service time of an exit (s)")
    panel.legend()
    return saved(figure, "Operator profile (figure 7)", path)
