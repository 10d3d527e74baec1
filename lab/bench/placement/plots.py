"""Figures 12 to 19 of ms-stream from the model, cut and balance of the partitioners, and latency on Spark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
from matplotlib import pyplot as plt

from lab.bench.measuring.plots import saved
from lab.bench.placement.partitions import Partitioned
from lab.bench.placement.simulated import SEVERAL, ZIPF
from lab.sim.cluster import SYSTEMS
from lab.sim.cluster_apps import APPLICATIONS

_TITLES = {"comm_count": "COMMCOUNT", "top_n": "Top_N"}
_SPARK = {
    "one_group": "one group",
    "groups_auto": 'groups="auto"',
    "groups_named": "heavy query in a named group",
}


def draw_simulated(found: Mapping[str, Any], folder: Path) -> list[str]:
    """One file for each figure of the paper."""
    paths = [
        _curves(found["figure_12"], _TITLES, ZIPF, "Zipf coefficient", "LIN", "Figure 12", folder, 12),
    ]
    names = {system: one.name for system, one in SYSTEMS.items()}
    for number, application in zip((13, 14), APPLICATIONS, strict=True):
        for offset, label in ((0, "bottleneck (tuples/s)"), (2, "latency at 5,000 tuples/s (ms)")):
            figure = number + offset
            title = f"Figure {figure}: {_TITLES[application]}"
            paths.append(
                _curves(
                    found[f"figure_{figure}"], names, ZIPF, "Zipf coefficient", label, title, folder, figure
                )
            )
    paths.append(_bars(found["figure_17"], names, "bottleneck (tuples/s)", folder, 17))
    paths.append(_bars(found["figure_18"], names, "latency at 8,000 tuples/s (ms)", folder, 18))
    paths.append(
        _curves(
            found["figure_19"],
            names,
            SEVERAL,
            "applications at once",
            "latency at 2,000 tuples/s each (ms)",
            "Figure 19: Top_N",
            folder,
            19,
        )
    )
    return paths


def draw_partitions(found: Sequence[Partitioned], path: Path) -> str:
    """Cut against balance, a point for each graph and number of groups."""
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for name, marker in (("round_robin", "x"), ("first_fit", "s"), ("metis", "o"), ("network", "^")):
        some = [one.quality for one in found if one.partitioner == name]
        if some:
            axes.plot([q.cut_share for q in some], [q.balance for q in some], marker, alpha=0.6, label=name)
    axes.set_xlabel("cut (share of all traffic)")
    axes.set_ylabel("load of the heaviest group over the mean")
    axes.set_yscale("log")
    axes.legend()
    return saved(figure, None, path)


def draw_spark(latencies_ms: Mapping[str, Sequence[float]], path: Path) -> str:
    """The distribution of what light queries waited for."""
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for name, values in latencies_ms.items():
        ordered = np.sort(np.asarray(values))
        axes.plot(ordered, np.arange(1, len(ordered) + 1) / len(ordered), label=_SPARK[name])
    axes.set_xscale("log")
    axes.set_xlabel("result latency of the light queries (ms)")
    axes.set_ylabel("share of windows")
    axes.legend()
    return saved(figure, None, path)


def _curves(
    curves: Mapping[str, Sequence[float]],
    names: Mapping[str, str],
    places: Sequence[float],
    across: str,
    up: str,
    title: str,
    folder: Path,
    number: int,
) -> str:
    figure, axes = plt.subplots(figsize=(6, 4))
    for (name, values), marker in zip(curves.items(), "osD^v", strict=False):
        shown = [value if math.isfinite(value) else math.nan for value in values]
        axes.plot(places, shown, f"{marker}-", label=names[name])
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.legend()
    return saved(figure, None, folder / f"placement-figure-{number}.png")


def _bars(
    found: Mapping[str, Mapping[str, float]], names: Mapping[str, str], up: str, folder: Path, number: int
) -> str:
    figure, axes = plt.subplots(figsize=(7, 4))
    width = 0.38
    for place, application in enumerate(APPLICATIONS):
        values = [by_app[application] for by_app in found.values()]
        shown = [value if math.isfinite(value) else 0.0 for value in values]
        axes.bar(np.arange(len(found)) + (place - 0.5) * width, shown, width, label=_TITLES[application])
    axes.set_xticks(range(len(found)), [names[system] for system in found])
    axes.set_xlabel("system")
    axes.set_ylabel(up)
    axes.set_title(f"Figure {number}")
    axes.legend()
    return saved(figure, None, folder / f"placement-figure-{number}.png")
