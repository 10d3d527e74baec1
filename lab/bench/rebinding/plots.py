"""Figures 2, 3 and 4 of the rebinding paper from simulated runs, and the distribution measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from lab.bench.measuring.plots import saved
from lab.bench.rebinding.simulated import SimulatedOutcome, mean_distribution, mean_over_seeds
from lab.sim.rebinding import DEADLINE_MS

_NAMES = {
    "static_interleaved": "static, interleaved",
    "static_by_type": "static, by type",
    "static_shuffled": "static, shuffled",
    "single_queue": "single queue",
    "greedy_blocking": "greedy, blocking",
    "greedy": "greedy, non-blocking",
    "greedy_by_type": "greedy, from by type",
    "greedy_eager_blocking": "greedy without tolerance, blocking",
    "greedy_eager": "greedy without tolerance, non-blocking",
    "greedy_literal": "greedy as printed",
}
_COLOURS = {
    "static_interleaved": "tab:red",
    "static_by_type": "tab:orange",
    "static_shuffled": "tab:brown",
    "single_queue": "tab:purple",
    "greedy_blocking": "tab:green",
    "greedy": "tab:blue",
    "greedy_by_type": "tab:olive",
    "greedy_eager_blocking": "tab:green",
    "greedy_eager": "tab:blue",
    "greedy_literal": "tab:cyan",
}

Outcomes = Mapping[str, Sequence[SimulatedOutcome]]


def draw_blocking(outcomes: Outcomes, agents: int, path: Path) -> str:
    """Figure 2: mean latency over time with and without barriers, and the quantiles of every seed."""
    figure, (over_time, quantiles) = plt.subplots(1, 2, figsize=(12, 4.8))
    _lines(over_time, outcomes)
    over_time.set_ylim(bottom=0)
    for place, (variant, runs) in enumerate(outcomes.items()):
        for name, marker in (("p50_ms", "o"), ("p99_ms", "^")):
            values = [getattr(run, name) for run in runs]
            label = f"{_NAMES[variant]}, {name[:3]}"
            quantiles.plot(
                [place] * len(values), values, marker, color=_COLOURS[variant], alpha=0.6, label=label
            )
    quantiles.set_xticks(range(len(outcomes)), [_NAMES[variant] for variant in outcomes])
    quantiles.set_xlabel("installation")
    quantiles.set_ylabel("query latency of each seed (ms)")
    quantiles.set_ylim(bottom=0)
    quantiles.legend(fontsize="small")
    return saved(figure, f"Blocking and non-blocking rebinding, {agents:,} agents (figure 2)", path)


def draw_constant(outcomes: Outcomes, agents: int, path: Path, which: str = "figure 3") -> str:
    """Figure 3: mean latency over time, and its distribution, under a constant load."""
    figure, (over_time, shares) = plt.subplots(1, 2, figsize=(13, 5.2))
    _lines(over_time, outcomes)
    over_time.set_yscale("log")
    _bars(
        shares,
        {variant: mean_distribution([r.distribution for r in runs]) for variant, runs in outcomes.items()},
    )
    return saved(figure, f"Ways of binding, {agents:,} agents ({which})", path)


def draw_varying(outcomes: Outcomes, agents: Sequence[int], seconds: float, path: Path) -> str:
    """Figure 4: mean latency over a squeezed morning, with the agents under way, and its distribution."""
    figure, (over_time, shares) = plt.subplots(1, 2, figsize=(13, 5.2))
    _lines(over_time, outcomes)
    over_time.set_yscale("log")
    beside = over_time.twinx()
    times = [seconds * frame / len(agents) for frame in range(len(agents))]
    beside.plot(times, agents, color="lightgrey", linestyle="--")
    beside.set_ylabel("agents under way")
    beside.set_ylim(bottom=0)
    _bars(
        shares,
        {variant: mean_distribution([r.distribution for r in runs]) for variant, runs in outcomes.items()},
    )
    return saved(figure, f"Ways of binding, up to {max(agents):,} agents (figure 4)", path)


def draw_measured(distributions: Mapping[str, Mapping[str, float]], agents: int, path: Path) -> str:
    """The distribution of latency on this machine's two threads."""
    figure, shares = plt.subplots(figsize=(10, 5))
    _bars(shares, distributions)
    return saved(figure, f"150 queries on two threads, measured, {agents:,} agents", path)


def _lines(panel: Axes, outcomes: Outcomes) -> None:
    for variant, runs in outcomes.items():
        seconds, means_ms = mean_over_seeds(runs)
        style = "--" if variant in ("greedy", "greedy_eager") else "-"  # what lies below stays visible
        panel.plot(seconds, means_ms, style, color=_COLOURS[variant], label=_NAMES[variant])
    panel.axhline(DEADLINE_MS, color="grey", linewidth=0.8, linestyle=":")
    panel.set_xlabel("time (s)")
    panel.set_ylabel("mean query latency (ms)")
    panel.legend(fontsize="small")


def _bars(panel: Axes, distributions: Mapping[str, Mapping[str, float]]) -> None:
    width = 0.85 / max(1, len(distributions))
    labels = list(next(iter(distributions.values())))
    for place, (variant, shares) in enumerate(distributions.items()):
        lefts = [at + (place - (len(distributions) - 1) / 2) * width for at in range(len(labels))]
        panel.bar(lefts, list(shares.values()), width, color=_COLOURS[variant], label=_NAMES[variant])
    panel.set_xticks(range(len(labels)), labels, rotation=30, ha="right")
    panel.set_xlabel("query latency (ms)")
    panel.set_ylabel("share of results")
    panel.legend(fontsize="small")
