"""The scheduling benchmark: every policy against threads, the ablation, and sudden changes."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

from lab.bench.measuring.heap import keep_freed_memory
from lab.bench.measuring.rates import Lengths
from lab.bench.measuring.report import Options, Report, median, progress
from lab.bench.scheduling.ablation import (
    ablation_figures,
    ablation_ratios,
    cases,
    measure_ablation,
    profile_figures,
)
from lab.bench.scheduling.curves import curve_figures, measure_curves
from lab.bench.scheduling.plots import draw_ablation, draw_curves, draw_rates, draw_shares, draw_steps
from lab.bench.scheduling.rates import (
    Rates,
    RateSettings,
    compared_systems,
    measure_rates,
    rate_figures,
    rate_ratios,
)
from lab.bench.scheduling.steps import QUERIES as STEP_QUERIES
from lab.bench.scheduling.steps import measure_steps, step_figures
from lab.bench.scheduling.systems import (
    LIMIT_MS,
    WORKERS,
    WORKLOADS,
    hand_over_sizes,
    systems,
    unpaced,
    warm_up,
)
from penstock.engine.node import Node

MIX_QUERIES = 10
_DECISION_LOAD = 0.8  # the load at which the cost of deciding is told
_STEP_TOP = 0.8  # the highest rate of the steps, of what six queries do as fast as they go


@dataclass(frozen=True)
class Grid:
    """What is run, and for how long."""

    rounds: int
    others: int  # policies besides the state-based one that take part in every round
    at_shares: int  # of these, of the state-based one and of threads, those run at parts of their rate
    search: Lengths
    at_share: Lengths
    ablation: Lengths
    pairs: Lengths  # of the ablation, with default blocks: these are compared
    curves: Lengths
    curve_queries: tuple[int, ...]
    curve_rounds: int
    stepped: tuple[str, ...]
    step_s: float
    sample_s: float


#: As much as fits into five minutes on two quiet cores.
SHORT = Grid(
    rounds=5,
    others=2,
    at_shares=2,
    search=Lengths(0.2, 0.35),
    at_share=Lengths(0.15, 0.3),
    ablation=Lengths(0.12, 0.15),
    pairs=Lengths(0.15, 0.4),
    curves=Lengths(0.08, 0.12),
    curve_queries=(1, 10),
    curve_rounds=1,
    stepped=("yahoo",),
    step_s=0.5,
    sample_s=0.1,
)
#: Five runs of half a minute; the paper's are of five minutes, which would take weeks for all of this.
FULL = Grid(
    rounds=5,
    others=8,
    at_shares=10,
    search=Lengths(5.0, 25.0),
    at_share=Lengths(5.0, 25.0),
    ablation=Lengths(2.0, 8.0),
    pairs=Lengths(2.0, 8.0),
    curves=Lengths(2.0, 8.0),
    curve_queries=tuple(range(1, 11)),
    curve_rounds=5,
    stepped=("linear_road", "yahoo"),
    step_s=60.0,
    sample_s=2.0,
)


def run(options: Options) -> Report:
    """Rates and latencies on the mix, then the ablation, the steps, and the curves over queries."""
    grid = FULL if options.full else SHORT
    began_s = time.monotonic()
    keep_freed_memory()
    progress("scheduling: compiling and warming up")
    warm_up(Lengths(0.1, 0.1))
    rates = measure_rates(
        WORKLOADS["mix"],
        RateSettings(
            grid.rounds, MIX_QUERIES, grid.search, grid.at_share, grid.others, at_shares=grid.at_shares
        ),
    )
    throughput, profiled = measure_ablation(cases(full=options.full), grid.rounds, grid.ablation, grid.pairs)
    compared = compared_systems(rates.highest, 1)
    steps = measure_steps(_tops(grid), compared, grid.step_s, grid.sample_s)
    known = {"mix": median(rates.highest["state"])}
    curves = measure_curves(grid.curve_queries, grid.curves, grid.curve_rounds, known)
    plots = (
        draw_rates(rates.highest, options.out / "scheduling-rates.png"),
        draw_shares(rates.at_share, options.out / "scheduling-latency.png"),
        draw_ablation(throughput, options.out / "scheduling-ablation.png"),
        draw_steps(steps, options.out / "scheduling-steps.png"),
        draw_curves(curves, options.out / "scheduling-queries.png"),
    )
    return Report(
        name="scheduling",
        settings={
            "workers": WORKERS,
            "systems": list(systems()),
            "mix_queries": MIX_QUERIES,
            "step_queries": STEP_QUERIES,
            "limit_ms": LIMIT_MS,
            "hand_over_sizes": list(hand_over_sizes()),
            "epoch_us": Node().epoch_us,
            **asdict(grid),
        },
        figures={
            "decision_share": decision_share(rates),
            "planning_share": planning_share(rates),
            **rate_figures(rates),
            "ablation_events_per_s": ablation_figures(throughput),
            "ablation_profile": profile_figures(profiled),
            "steps": step_figures(steps, grid.step_s),
            "queries": curve_figures(curves),
            "seconds": time.monotonic() - began_s,
        },
        ratios={
            **ablation_ratios(throughput, Node().block_events),
            **rate_ratios(rates.highest),
        },
        plots=plots,
    )


def decision_share(rates: Rates) -> float:
    """Workers' time spent on deciding over time spent in turns, of the state-based policy at 80 % load."""
    return median([run.metrics.decision_share for run in rates.at_share["state"][_DECISION_LOAD]])


def planning_share(rates: Rates) -> float:
    """The same for what the scheduler's own thread spends on measuring and planning."""
    return median([run.metrics.planning_share for run in rates.at_share["state"][_DECISION_LOAD]])


def _tops(grid: Grid) -> dict[str, float]:
    """For each workload the highest rate of its steps: most of what the state-based policy can do."""
    tops = {}
    for name in grid.stepped:
        fastest = unpaced(WORKLOADS[name], systems()["state"], STEP_QUERIES, grid.search)
        tops[name] = _STEP_TOP * fastest.read / fastest.elapsed_s
    return tops
