"""The highest rate with p99 ≤ 100 ms of every system, in rounds, and latency at parts of that rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.bench.rates import Lengths, Paced, highest_rate, interval
from penstock.bench.report import median, progress
from penstock.bench.scheduling_systems import LIMIT_MS, THREADS, Workload, paced, systems

SHARES = (0.5, 0.8, 0.95)
_FIRST_RATE = 6_000_000.0  # where the very first search begins


@dataclass(frozen=True)
class RateSettings:
    """How the rates are searched for."""

    rounds: int
    queries: int
    search: Lengths
    at_share: Lengths
    others: int  # so many of the other policies, the best of the first round, take part in every round
    at_shares: int  # so many of the compared systems are run at parts of their highest rate too


_GROWTH, _STEPS = 1.1, 1  # of a search that begins where the round before has ended
_FIRST_GROWTH, _FIRST_STEPS = 2.0, 1  # of the first search for a system
_FIRST_SHARE = 0.25  # of the state-based policy's rate: what is too much takes longest to find out


@dataclass
class Rates:
    """What was found: by system, one value for every round it took part in."""

    highest: dict[str, list[float]] = field(default_factory=dict)
    runs: dict[str, list[Paced]] = field(default_factory=dict)  # at the highest rate
    at_share: dict[str, dict[float, list[Paced]]] = field(default_factory=dict)


def measure_rates(workload: Workload, settings: RateSettings) -> Rates:
    """All systems once; then the state-based policy, threads and the best others, until all rounds are done.

    Systems take turns within a round, in one direction and then in the other, so that a machine that grows
    slower does not favour one of them.
    """
    nodes, rates = systems(), Rates()

    def search(name: str, start: float, *, first: bool = False) -> None:
        def run(rate: float) -> Paced:
            return paced(workload, nodes[name], settings.queries, rate, settings.search, drains=False)

        # The first search decides who takes part in the rounds: one bad run must not.
        growth, steps = (_FIRST_GROWTH, _FIRST_STEPS) if first else (_GROWTH, _STEPS)
        best = highest_rate(run, start, p99_ms=LIMIT_MS, steps=steps, growth=growth, patient=first)
        found = best.rate if best.sustains(LIMIT_MS) else 0.0
        rates.highest.setdefault(name, []).append(found)
        rates.runs.setdefault(name, []).append(best)
        progress(f"scheduling: {workload.name}, {name}: {found / 1e6:.2f} M/s under {LIMIT_MS:.0f} ms")

    # The first run of many queries loads their kernels, and would fail for that.
    paced(workload, nodes["state"], settings.queries, 0.5 * _FIRST_RATE, settings.search)
    search("state", _FIRST_RATE, first=True)
    for name in nodes:
        if name != "state":
            search(name, _FIRST_SHARE * (rates.highest["state"][0] or _FIRST_RATE), first=True)
    rates.highest["state"].clear()  # from afar: less exact than the searches that follow
    rates.runs["state"].clear()
    compared = compared_systems(rates.highest, settings.others)
    start = {name: found[0] for name, found in rates.highest.items() if found}
    start["state"] = max(start.values())
    for number in range(settings.rounds):
        progress(f"scheduling: {workload.name}, round {number + 1} of {settings.rounds}")
        for name in compared[:: 1 if number % 2 == 0 else -1]:
            if number or name == "state":
                known = [rate for rate in rates.highest[name] if rate]
                search(name, known[-1] if known else start[name])
            top = rates.highest[name][-1] or start[name]
            for share in SHARES if name in compared[: settings.at_shares] else ():
                at = paced(workload, nodes[name], settings.queries, share * top, settings.at_share)
                rates.at_share.setdefault(name, {}).setdefault(share, []).append(at)
    return rates


def compared_systems(highest: Mapping[str, Sequence[float]], others: int) -> list[str]:
    """The systems of every round: the state-based policy, threads and the best of the other policies."""
    rest = [name for name in highest if name not in ("state", THREADS) and highest[name]]
    best = sorted(rest, key=lambda name: highest[name][0], reverse=True)
    return ["state", THREADS, *best[:others]]


def rate_ratios(highest: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """State-based over threads, and over the best other policy: medians of the rounds' ratios.

    Against the others, the least of the medians counts: the best of several in each round would be the
    luckiest of them. A policy that took part in the first round only was slower there than those that stayed.
    """
    state = highest["state"]
    against = {
        name: median([own / other for own, other in zip(state, found, strict=True) if other])
        for name, found in highest.items()
        if name != "state" and len(found) == len(state) and any(found)
    }
    threads = against.pop(THREADS)
    return {
        "rate_under_100ms_state_vs_threads": threads,
        "state_vs_best_other": min(against.values()),
    }


def rate_figures(rates: Rates) -> dict[str, object]:
    """Rates with their intervals, and latencies at parts of each system's own highest rate."""
    return {
        "rate_under_100ms": {name: spread(found) for name, found in rates.highest.items()},
        "rate_under_100ms_rounds": {name: list(found) for name, found in rates.highest.items()},
        "latency_at_share": {
            name: {
                str(share): {
                    "p50_ms": spread([run.p50_ms for run in runs]),
                    "p99_ms": spread([run.p99_ms for run in runs]),
                    "decision_share": median([run.metrics.decision_share for run in runs]),
                    "planning_share": median([run.metrics.planning_share for run in runs]),
                    "busy_share": median([run.metrics.busy_share for run in runs]),
                }
                for share, runs in by_share.items()
            }
            for name, by_share in rates.at_share.items()
        },
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """The mean and its 95 % interval, by name, and the median."""
    mean, low, high = interval(values)
    return {"mean": mean, "low": low, "high": high, "median": median(values)}
