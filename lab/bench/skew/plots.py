"""Figures 7 to 11 of ms-stream from simulated tasks, the sweep over χ, a changing stream, and what was
measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.bench.measuring.plots import saved

_NAMES = {
    "hash": "hash",
    "shuffle": "shuffle and merge",
    "partial_key": "partial key (PKG)",
    "popularity": "popularity-aware (PStream)",
    "two_tier": "two-tier (ours)",
}
_COLOURS = dict(zip(_NAMES, ("tab:red", "tab:grey", "tab:orange", "tab:green", "tab:blue"), strict=True))
_ZIPF = "Zipf coefficient of the items"

ByZipf = Mapping[str, Mapping[str, Any]]


def draw_imbalance(by_zipf: ByZipf, path: Path) -> str:
    """Figure 7: the imbalance over the skew, before and after."""
    figure, panel = plt.subplots(figsize=(7, 4.5))
    for name, label, colour in (
        ("lit_before", "hash", _COLOURS["hash"]),
        ("lit_after", "two-tier, observed", _COLOURS["two_tier"]),
        ("lit_expected", "two-tier, as the last plan expected", "tab:cyan"),
    ):
        panel.plot(_places(by_zipf), _of(by_zipf, name), "o-", color=colour, label=label)
    return _saved(figure, panel, _ZIPF, "load imbalance LIT", "Imbalance of stateful tasks (figure 7)", path)


def draw_heavy(by_zipf: ByZipf, path: Path) -> str:
    """Throughput of a function that cannot be merged, as a share of the best that any routing can do."""
    figure, panel = plt.subplots(figsize=(7, 4.5))
    panel.plot(_places(by_zipf), _of(by_zipf, "hash_of_bound"), "o-", color=_COLOURS["hash"], label="hash")
    panel.plot(
        _places(by_zipf), _of(by_zipf, "of_bound"), "o-", color=_COLOURS["two_tier"], label="two-tier (ours)"
    )
    panel.axhline(1.0, color="grey", linewidth=0.8, linestyle=":")
    panel.set_ylim(bottom=0)
    return _saved(
        figure, panel, _ZIPF, "throughput, of the bound", "A heavy function per key on 16 tasks", path
    )


def draw_bottleneck(by_zipf: ByZipf, application: str, number: int, path: Path) -> str:
    """Figures 8 and 9: the most events a second, without and with partial aggregation."""
    figure, panels = plt.subplots(1, 2, figsize=(12, 4.5), sharey=True)
    for panel, suffix, title in zip(
        panels, ("", "+partial"), ("events are grouped", "partial counts are grouped"), strict=True
    ):
        for name, label in _NAMES.items():
            values = [by_zipf[zipf][name + suffix]["events_per_s"] / 1e6 for zipf in by_zipf]
            panel.plot(_places(by_zipf), values, "o-", color=_COLOURS[name], label=label)
        panel.set_title(title, fontsize="medium")
        panel.set_xlabel(_ZIPF)
        panel.set_ylabel("most events per second (millions)")
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="small")
    return saved(figure, f"System bottleneck of {application} (figure {number})", path)


def draw_latency(by_zipf: ByZipf, application: str, number: int, path: Path) -> str:
    """Figures 10 and 11: mean latency at the paper's rate."""
    figure, panel = plt.subplots(figsize=(7, 4.5))
    for name, label in _NAMES.items():
        values = [by_zipf[zipf][name] for zipf in by_zipf]
        panel.plot(_places(by_zipf), values, "o-", color=_COLOURS[name], label=label)
    panel.set_yscale("log")
    title = f"System latency of {application}, 10,000 events/s (figure {number})"
    return _saved(figure, panel, _ZIPF, "mean latency (ms, time scaled)", title, path)


def draw_chi(by_chi: Mapping[str, ByZipf], path: Path) -> str:
    """What χ does: throughput, imbalance and migrations."""
    figure, panels = plt.subplots(1, 3, figsize=(14, 4.2))
    for panel, name, label in zip(
        panels,
        ("of_bound", "lit_after", "migrations"),
        ("throughput, of the bound", "load imbalance LIT", "partitions moved"),
        strict=True,
    ):
        for zipf, results in by_chi.items():
            panel.plot(_places(results), _of(results, name), "o-", label=f"Zipf {zipf}")
        panel.set_xlabel("threshold χ")
        panel.set_ylabel(label)
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="small")
    return saved(figure, "The threshold of the rebalancer, 16 tasks", path)


def draw_changing(told: Mapping[str, Sequence[float]], path: Path) -> str:
    """A stream whose skew rises and whose hot items then move."""
    figure, (imbalance, throughput) = plt.subplots(1, 2, figsize=(12, 4.5))
    for panel, name, label in (
        (imbalance, "lit", "load imbalance LIT"),
        (throughput, "events_per_s", "events per second"),
    ):
        batches = range(len(told[name]))
        panel.plot(batches, told[f"hash_{name}"], color=_COLOURS["hash"], label="hash")
        panel.plot(batches, told[name], color=_COLOURS["two_tier"], label="two-tier (ours)")
        panel.set_xlabel("batch")
        panel.set_ylabel(label)
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="small")
    return saved(figure, "Skew from 0.2 to 1.0 after a third, other hot items after two thirds", path)


def draw_measured(measured: Mapping[str, ByZipf], path: Path) -> str:
    """Two workers on this machine: throughput over the skew, hash against two tiers."""
    figure, panels = plt.subplots(1, len(measured), figsize=(6 * len(measured), 4.5), squeeze=False)
    for panel, (runtime, by_zipf) in zip(panels[0], measured.items(), strict=True):
        for name, key in (("hash", "hash_events_per_s"), ("two_tier", "events_per_s")):
            panel.plot(_places(by_zipf), _of(by_zipf, key), "o-", color=_COLOURS[name], label=_NAMES[name])
        panel.set_title(runtime, fontsize="medium")
        panel.set_xlabel(_ZIPF)
        panel.set_ylabel("events per second")
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="small")
    return saved(figure, "A heavy function per key on two workers, measured", path)


def _places(results: Mapping[str, Any]) -> list[float]:
    return [float(place) for place in results]


def _of(results: ByZipf, name: str) -> list[float]:
    return [results[place][name] for place in results]


def _saved(figure: Figure, panel: Axes, x: str, y: str, title: str, path: Path) -> str:
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    panel.legend(fontsize="small")
    return saved(figure, title, path)
