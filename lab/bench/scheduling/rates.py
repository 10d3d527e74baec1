"""The highest rate with p99 ≤ 100 ms of every system, in rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.bench.measuring.rates import Lengths, Paced, highest_rate, interval
from lab.bench.measuring.report import median, progress
from lab.bench.scheduling.systems import LIMIT_MS, THREADS, Workload, paced, systems
from penstock.engine.node import Node

_FIRST_RATE = 6_000_000.0  # where the very first search begins


@dataclass(frozen=True)
class RateSettings:
    """How the rates are searched for."""

    rounds: int
    queries: int
    search: Lengths
    others: (
        int  # so many of the other policies, the best of the first round, take part in every round after it
    )


_GROWTH, _STEPS = 1.1, 1  # of a search that begins where the round before has ended
_FIRST_GROWTH, _FIRST_STEPS = 2.0, 1  # of the first search for a system
_FIRST_SHARE = 0.25  # of the state-based policy's rate: what is too much takes longest to find out
_NEAR = 0.5  # of the best first search: who is below takes part in no round


#: System → the highest rate of every round that it took part in.
Rates = dict[str, list[float]]


def measure_rates(
    workload: Workload, settings: RateSettings, nodes: Mapping[str, Node] | None = None
) -> Rates:
    """All systems once, from afar; then the state-based policy, threads and all others that come near it in a
    round, and in all further rounds those two and the best others of that one, each from where its last
    search has ended.

    Systems take turns within a round, in one direction and then in the other, so that a machine that grows
    slower does not favour one of them. ``nodes`` are all policies and threads, unless given.
    """
    nodes = nodes or systems()
    rates: Rates = {}

    def search(name: str, start: float, *, first: bool = False) -> None:
        def run(rate: float) -> Paced:
            return paced(workload, nodes[name], settings.queries, rate, settings.search, drains=False)

        growth, steps = (_FIRST_GROWTH, _FIRST_STEPS) if first else (_GROWTH, _STEPS)
        # Patient: one bad run must not end a search, nor decide who takes part in the rounds.
        best = highest_rate(run, start, p99_ms=LIMIT_MS, steps=steps, growth=growth, patient=True)
        found = best.rate if best.sustains(LIMIT_MS) else 0.0
        rates.setdefault(name, []).append(found)
        progress(f"scheduling: {workload.name}, {name}: {found / 1e6:.2f} M/s under {LIMIT_MS:.0f} ms")

    # The first run of many queries loads their kernels, and would fail for that.
    paced(workload, nodes["state"], settings.queries, 0.5 * _FIRST_RATE, settings.search)
    search("state", _FIRST_RATE, first=True)
    for name in nodes:
        if name != "state":
            search(name, _FIRST_SHARE * (rates["state"][0] or _FIRST_RATE), first=True)
    compared = compared_systems(rates, len(nodes), _NEAR)
    start = {name: rates[name].pop() for name in compared}  # less exact than the searches that follow
    top = max(start.values())
    start = {name: found or _FIRST_SHARE * top for name, found in start.items()}
    for number in range(settings.rounds):
        progress(f"scheduling: {workload.name}, round {number + 1} of {settings.rounds}")
        for name in compared[:: 1 if number % 2 == 0 else -1]:
            search(name, start[name])
            start[name] = rates[name][-1] or start[name]
        if number == 0:
            compared = compared_systems({name: rates[name] for name in compared}, settings.others)
    return rates


def compared_systems(highest: Mapping[str, Sequence[float]], others: int, near: float = 0.0) -> list[str]:
    """The systems of a round: the state-based policy, threads and the best of the other policies by their
    first search, those that come near the best of all."""
    rest = [name for name in highest if name not in ("state", THREADS) and highest[name]]
    best = sorted(rest, key=lambda name: highest[name][0], reverse=True)
    least = near * max((found[0] for found in highest.values() if found), default=0.0)
    first = [name for name in ("state", THREADS) if name in highest]
    return [*first, *[name for name in best if highest[name][0] >= least][:others]]


def rate_ratios(highest: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """State-based over threads, and over the best other policy: medians of the rounds' ratios.

    Against the others, the least of the medians counts: the best of several in each round would be the
    luckiest of them. A policy that was searched for once only was slower then than those that stayed. NaN
    where nobody sustained anything that it could be compared with.
    """
    state = highest["state"]
    against = {
        name: median([own / other for own, other in zip(state, found, strict=True) if other])
        for name, found in highest.items()
        if name != "state" and len(found) == len(state) and any(found)
    }
    return {
        "rate_under_100ms_state_vs_threads": against.pop(THREADS, math.nan),
        "state_vs_best_other": min(against.values(), default=math.nan),
    }


def rate_figures(rates: Rates) -> dict[str, object]:
    """Rates with their intervals, and round by round."""
    return {
        "rate_under_100ms": {name: spread(found) for name, found in rates.items()},
        "rate_under_100ms_rounds": {name: list(found) for name, found in rates.items()},
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """The mean and its 95 % interval, by name, and the median."""
    mean, low, high = interval(values)
    return {"mean": mean, "low": low, "high": high, "median": median(values)}
