"""Latency and the cost of deciding at parts of one load: every policy, the default without each rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lab.bench.measuring.rates import Lengths, Paced, all_queries
from lab.bench.measuring.report import median, progress
from lab.bench.scheduling.rates import spread
from lab.bench.scheduling.systems import THREADS, WORKERS, Workload, paced, systems
from penstock.engine.node import Node
from penstock.scheduling.dispatch.rules import Rules

SHARES = (0.1, 0.5, 0.8)
DECISION_SHARE_AT = 0.8  # the load at which the cost of deciding is told
RULES = ("passes", "alone", "together", "patience", "staying")

#: System → part of the load → runs, one a round.
Loads = Mapping[str, Mapping[float, Sequence[Paced]]]


def without_rules() -> dict[str, Node]:
    """The default policy without one rule each, without fusion, and all alone."""
    state = Node(workers=WORKERS, scheduling="state")
    return {
        **{f"no {rule}": replace(state, rules=replace(Rules(), **{rule: False})) for rule in RULES},
        "no fusion": replace(state, fusion=False),
        "policy alone": replace(state, rules=Rules.none(), fusion=False),
    }


def measure_loads(
    workload: Workload, queries: int, top: float, lengths: Lengths, rounds: int, nodes: Mapping[str, Node]
) -> Loads:
    """Runs every system at the same rates, parts of ``top``, round after round and to and fro."""
    found: dict[str, dict[float, list[Paced]]] = {name: {share: [] for share in SHARES} for name in nodes}
    for number in range(rounds):
        for share in SHARES:
            for name in list(nodes)[:: 1 if number % 2 == 0 else -1]:
                run = paced(workload, nodes[name], queries, share * top, lengths, drains=False)
                found[name][share].append(run)
        progress(
            f"scheduling: {workload.name} at parts of {top / 1e6:.1f} M/s, round {number + 1} of {rounds}"
        )
    return found


def load_systems() -> dict[str, Node]:
    """Every policy and threads with everything on, then the default with something off."""
    return {**systems(), **without_rules()}


def load_figures(loads: Loads) -> dict[str, object]:
    """Latencies with their intervals, and what deciding and planning took of the time inside turns."""
    return {
        name: {
            str(share): {
                "mean_ms": spread([all_queries(run.metrics).mean_ms for run in runs]),
                "p50_ms": spread([run.p50_ms for run in runs]),
                "p99_ms": spread([run.p99_ms for run in runs]),
                "kept": sum(run.kept for run in runs) / len(runs),
                "decision_share": median([run.metrics.decision_share for run in runs]),
                "planning_share": median([run.metrics.planning_share for run in runs]),
                "busy_share": median([run.metrics.busy_share for run in runs]),
            }
            for share, runs in by_share.items()
        }
        for name, by_share in loads.items()
    }


def decision_shares(loads: Loads) -> dict[str, float]:
    """Workers' time spent on deciding over time spent in turns, of every policy at 80 % of the load."""
    return {
        name: median([run.metrics.decision_share for run in loads[name][DECISION_SHARE_AT]])
        for name in systems()
        if name != THREADS and name in loads
    }


def load_ratios(loads: Loads) -> dict[str, float]:
    """The default's mean and 99th percentile over those of the best other policy: medians of the rounds'
    ratios against the policy that has the least median. NaN where none has any latency."""
    ratios = {}
    others = [name for name in systems() if name not in ("state", THREADS) and name in loads]
    for share in SHARES:
        for word in ("mean", "p99"):
            values = {
                name: [_latency(run, word) for run in loads[name][share]] for name in ("state", *others)
            }
            best = min((median(values[name]), name) for name in others)[1] if others else "state"
            pairs = zip(values["state"], values[best], strict=True)
            ratios[f"state_{word}_over_best_at_{share:g}"] = median([own / other for own, other in pairs])
    return ratios


def _latency(run: Paced, word: str) -> float:
    value = all_queries(run.metrics).mean_ms if word == "mean" else run.p99_ms
    return math.inf if math.isnan(value) else value  # nothing came through in that time
