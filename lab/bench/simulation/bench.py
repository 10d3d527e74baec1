"""The simulator against this machine, and then on the machine of the paper: 24 cores.

Simulated are the policies on two threads, with turns, events, windows and decisions that cost what they were
measured to cost, and then the engine is run with the same policies at the same rates.

Run it on a machine that does nothing else: ``figures.others_share`` tells how far it did not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lab.bench.measuring.heap import keep_freed_memory
from lab.bench.measuring.rates import Lengths
from lab.bench.measuring.report import Options, Report, progress
from lab.bench.scheduling.systems import LIMIT_MS, THREADS, WORKERS, WORKLOADS, warm_up
from lab.bench.simulation.calibration import BLOCKS, MODERATE, calibrate
from lab.bench.simulation.load import Usage
from lab.bench.simulation.plots import draw_predictions, draw_scaling
from lab.bench.simulation.policies import (
    POLICIES,
    Measured,
    Predicted,
    clear_order,
    clear_order_of,
    highest_of_rounds,
    highest_rates,
    in_processes,
    measure,
    medians,
    order_of,
    orders_by_rate,
    predict,
    together,
)
from lab.sim.query_scaling import POLICIES as SCALED_POLICIES
from lab.sim.query_scaling import QUERIES, SERVER, ScalingPoint, scale_queries

MIX_QUERIES = 10
#: Rates as shares of what two cores could do if only events cost time. From the least, which every policy
#: should carry, to one that few do.
SHARES = (0.1, 0.25, 0.5, 0.75, 0.95, 1.1)


@dataclass(frozen=True)
class SimulationExtent:
    """What is run, and for how long."""

    rounds: int
    calibration: Lengths
    lengths: Lengths  # of a run, simulated and measured
    workloads: tuple[str, ...]
    scaled_policies: tuple[str, ...]
    queries: tuple[int, ...]
    scaled_s: float  # simulated, of the 24 cores


#: At most four minutes on two quiet cores.
SHORT = SimulationExtent(
    rounds=4,
    calibration=Lengths(0.3, 1.0),
    lengths=Lengths(0.25, 0.6),
    workloads=("yahoo", "linear_road"),
    scaled_policies=("state", "min_cost", "round_robin", THREADS),
    queries=(2, 6, 10),
    scaled_s=0.06,
)
FULL = SimulationExtent(
    rounds=9,
    calibration=Lengths(1.0, 5.0),
    lengths=Lengths(1.0, 4.0),
    workloads=("yahoo", "linear_road", "taxi"),
    scaled_policies=SCALED_POLICIES,
    queries=QUERIES,
    scaled_s=0.3,
)


def run(options: Options) -> Report:
    """Calibrates, predicts, measures and compares; then the paper's query scaling."""
    plan = FULL if options.full else SHORT
    began_s = time.monotonic()
    mix = WORKLOADS["mix"]
    keep_freed_memory()
    progress("simulation: compiling and warming up")
    warm_up(Lengths(0.2, 0.3))
    before = Usage.now()
    found = calibrate(mix, MIX_QUERIES, POLICIES, plan.calibration)
    capacity = found.capacity(WORKERS)
    rates = [share * capacity for share in SHARES]
    measured = measure(mix, MIX_QUERIES, POLICIES, rates, plan.lengths, plan.rounds)
    others = before.others_until(Usage.now())
    progress(f"simulation: others took {others:.0%} of the machine meanwhile")
    progress(f"simulation: simulating {len(POLICIES)} policies at {len(rates)} rates")
    predicted = predict(found, POLICIES, rates, plan.lengths)
    progress(f"simulation: simulating {SERVER.cores} cores")
    points = scaled(plan)
    return Report(
        name="simulation",
        settings={
            "workers": WORKERS,
            "mix_queries": MIX_QUERIES,
            "limit_ms": LIMIT_MS,
            "calibration_blocks": list(BLOCKS),
            "calibration_rate": MODERATE,
            "rates": rates,
            "server": asdict(SERVER),
            **asdict(plan),
        },
        figures={
            **order_figures(predicted, measured),
            "others_share": others,
            "calibration": {**found.figures(), "capacity": capacity},
            "query_scaling": scaling_figures(points),
            "seconds": time.monotonic() - began_s,
        },
        ratios=scaling_ratios(points),
        plots=(
            draw_predictions(predicted, medians(measured), options.out / "simulation-policies.png"),
            draw_scaling(points, options.out / "simulation-queries.png"),
        ),
    )


def order_figures(predicted: Predicted, measured: Measured) -> dict[str, Any]:
    """The agreement first, then what it is made of."""
    middle = medians(measured)
    by_rate = orders_by_rate(predicted, measured)
    every, clear = together(by_rate.values()), clear_order(predicted, measured)
    highest, highest_measured = highest_rates(predicted), highest_rates(middle)
    by_highest = order_of(highest, highest_measured)
    clear_by_highest = clear_order_of(highest, in_rounds := highest_of_rounds(measured))
    return {
        "agreement": every.agreement,
        "pairs": every.pairs,
        "agreement_of_clear_pairs": clear.agreement,
        "clear_pairs": clear.pairs,
        "agreement_highest_rate": by_highest.agreement,
        "pairs_highest_rate": by_highest.pairs,
        "reversed_highest_rate": [" ".join(pair) for pair in by_highest.reversed_pairs],
        "agreement_highest_rate_of_clear_pairs": clear_by_highest.agreement,
        "clear_pairs_highest_rate": clear_by_highest.pairs,
        "by_rate": {
            f"{rate / 1e6:.2f} M/s": {
                "agreement": order.agreement,
                "pairs": order.pairs,
                "reversed": [" ".join(pair) for pair in order.reversed_pairs],
                "p99_ms": {
                    policy: {
                        "predicted": predicted[policy][rate],
                        "measured": middle[policy][rate],
                        "rounds": list(measured[policy][rate]),
                    }
                    for policy in predicted
                },
            }
            for rate, order in by_rate.items()
        },
        "rate_under_100ms": {
            policy: {
                "predicted": highest[policy],
                "measured": highest_measured[policy],
                "rounds": in_rounds[policy],
            }
            for policy in highest
        },
    }


def scaled(plan: SimulationExtent, processes: int = 0) -> list[ScalingPoint]:
    """Enjima's figure 5, the longest simulations first."""
    jobs = [
        (workload, policy, queries, plan.scaled_s)
        for queries in sorted(plan.queries, reverse=True)
        for workload in plan.workloads
        for policy in plan.scaled_policies
    ]
    return in_processes(_scaled, jobs, processes)


def _scaled(job: tuple[str, str, int, float]) -> ScalingPoint:
    workload, policy, queries, seconds = job
    return scale_queries(workload, policies=(policy,), queries=(queries,), seconds=seconds)[0]


def scaling_figures(points: Sequence[ScalingPoint]) -> dict[str, Any]:
    """Points by workload, policy and queries."""
    figures: dict[str, Any] = {}
    for point in sorted(points, key=lambda point: point.queries):
        by_policy = figures.setdefault(point.workload, {}).setdefault(point.policy, {})
        by_policy[str(point.queries)] = {
            name: getattr(point, name)
            for name in ("offered", "throughput", "mean_ms", "p99_ms", "context_switches")
        }
    return figures


def scaling_ratios(points: Sequence[ScalingPoint]) -> dict[str, float]:
    """Simulated throughput of the state-based policy over that of threads, with the most queries."""
    most = max(point.queries for point in points)
    at_most: Mapping[tuple[str, str], float] = {
        (point.workload, point.policy): point.throughput for point in points if point.queries == most
    }
    return {
        f"simulated_{workload}_{most}_queries_state_vs_threads": throughput / at_most[workload, THREADS]
        for (workload, policy), throughput in at_most.items()
        if policy == "state"
    }
