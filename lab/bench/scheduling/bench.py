"""The scheduling benchmark: every policy against threads, the rules, the ablation, and sudden changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

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
from lab.bench.scheduling.loads import (
    DECISION_SHARE_AT,
    decision_shares,
    load_figures,
    load_ratios,
    load_systems,
    measure_loads,
)
from lab.bench.scheduling.plots import draw_ablation, draw_curves, draw_rates, draw_shares, draw_steps
from lab.bench.scheduling.rates import (
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
    THREADS,
    WORKERS,
    WORKLOADS,
    hand_over_sizes,
    systems,
    unpaced,
    unruled,
    warm_up,
)
from penstock.engine.node import Node
from penstock.query.errors import PenstockError

MIX_QUERIES = 10
_STEP_TOP = 0.8  # the highest rate of the steps, of what six queries do as fast as they go
_LOAD_SEARCHES = 3  # of the rate that is the whole load, where it is not known already


@dataclass(frozen=True)
class Grid:
    """What is run, and for how long."""

    rounds: int
    others: int  # policies besides the state-based one that take part in every round
    search: Lengths
    unruled_rounds: int
    load_rounds: int
    loads: Lengths
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
    search=Lengths(0.2, 0.35),
    unruled_rounds=1,
    load_rounds=3,
    loads=Lengths(0.12, 0.3),
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
    search=Lengths(5.0, 25.0),
    unruled_rounds=5,
    load_rounds=5,
    loads=Lengths(5.0, 25.0),
    ablation=Lengths(2.0, 8.0),
    pairs=Lengths(2.0, 8.0),
    curves=Lengths(2.0, 8.0),
    curve_queries=tuple(range(1, 11)),
    curve_rounds=5,
    stepped=("linear_road", "yahoo"),
    step_s=60.0,
    sample_s=2.0,
)


@dataclass
class Findings:
    """What the parts that have been run have found; later ones use what earlier ones know."""

    grid: Grid
    options: Options
    highest: dict[str, list[float]] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    plots: list[str] = field(default_factory=list)

    def draw(self, draw: Callable[..., str], drawn: object, name: str) -> None:
        """Adds a picture."""
        self.plots.append(draw(drawn, self.options.out / f"scheduling-{name}.png"))

    @property
    def compared(self) -> list[str]:
        """The default, threads and the policy that came nearest."""
        return compared_systems(self.highest, 1) if self.highest else ["state", THREADS, "first_come"]


def run(options: Options) -> Report:
    """All parts one after the other, or the one that is asked for."""
    if options.part is not None and options.part not in PARTS:
        raise PenstockError(f"scheduling has the parts {', '.join(PARTS)}; got '{options.part}'")
    grid = FULL if options.full else SHORT
    began_s = time.monotonic()
    keep_freed_memory()
    progress("scheduling: compiling and warming up")
    warm_up(Lengths(0.1, 0.1))
    findings = Findings(grid, options)
    seconds = {}
    for name, measure in PARTS.items():
        if options.part in (None, name):
            part_s = time.monotonic()
            measure(findings)
            seconds[name] = time.monotonic() - part_s
    return Report(
        name="scheduling" if options.part is None else f"scheduling-{options.part}",
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
        figures={**findings.figures, "part_seconds": seconds, "seconds": time.monotonic() - began_s},
        ratios=findings.ratios,
        plots=tuple(findings.plots),
    )


def _rates(found: Findings) -> None:
    """The highest rates on the mix, with everything on and by the policies alone."""
    grid, mix = found.grid, WORKLOADS["mix"]
    found.highest = measure_rates(mix, RateSettings(grid.rounds, MIX_QUERIES, grid.search, grid.others))
    alone = measure_rates(
        mix, RateSettings(grid.unruled_rounds, MIX_QUERIES, grid.search, grid.others), unruled()
    )
    found.figures.update(rate_figures(found.highest))
    found.figures["without_rules"] = rate_figures(alone)
    found.ratios.update(rate_ratios(found.highest))
    found.ratios["state_vs_best_other_without_rules"] = rate_ratios(alone)["state_vs_best_other"]
    found.draw(draw_rates, found.highest, "rates")


def _loads(found: Findings) -> None:
    """Every policy and every rule at parts of the load that the default sustains."""
    grid, mix = found.grid, WORKLOADS["mix"]
    if not found.highest:
        settings = RateSettings(_LOAD_SEARCHES, MIX_QUERIES, grid.search, 0)
        found.highest = measure_rates(mix, settings, {"state": systems()["state"]})
    top = median(found.highest["state"])
    loads = measure_loads(mix, MIX_QUERIES, top, grid.loads, grid.load_rounds, load_systems())
    by_policy = decision_shares(loads)
    found.figures.update(
        load_events_per_s=top,
        decision_share=max(by_policy.values()),
        decision_share_by_policy=by_policy,
        planning_share=median([run.metrics.planning_share for run in loads["state"][DECISION_SHARE_AT]]),
        latency_at_load=load_figures(loads),
    )
    found.ratios.update(load_ratios(loads))
    found.draw(draw_shares, {name: loads[name] for name in systems()}, "latency")


def _ablation(found: Findings) -> None:
    """The paper's: threads or scheduling, queues or blocks."""
    grid = found.grid
    measured = cases(full=found.options.full)
    throughput, profiled = measure_ablation(measured, grid.rounds, grid.ablation, grid.pairs)
    found.figures["ablation_events_per_s"] = ablation_figures(throughput)
    found.figures["ablation_profile"] = profile_figures(profiled)
    found.ratios.update(ablation_ratios(throughput, Node().block_events))
    found.draw(draw_ablation, throughput, "ablation")


def _steps(found: Findings) -> None:
    """Sudden changes of the rate and of the selectivity."""
    grid = found.grid
    steps = measure_steps(_tops(grid), found.compared, grid.step_s, grid.sample_s)
    found.figures["steps"] = step_figures(steps, grid.step_s)
    found.draw(draw_steps, steps, "steps")


def _queries(found: Findings) -> None:
    """Throughput and latency over the number of queries."""
    grid = found.grid
    known = {"mix": median(found.highest["state"])} if found.highest else {}
    curves = measure_curves(grid.curve_queries, grid.curves, grid.curve_rounds, known)
    found.figures["queries"] = curve_figures(curves)
    found.draw(draw_curves, curves, "queries")


#: In this order.
PARTS: dict[str, Callable[[Findings], None]] = {
    "rates": _rates,
    "loads": _loads,
    "ablation": _ablation,
    "steps": _steps,
    "queries": _queries,
}


def _tops(grid: Grid) -> dict[str, float]:
    """For each workload the highest rate of its steps: most of what the state-based policy can do."""
    tops = {}
    for name in grid.stepped:
        fastest = unpaced(WORKLOADS[name], systems()["state"], STEP_QUERIES, grid.search)
        tops[name] = _STEP_TOP * fastest.read / fastest.elapsed_s
    return tops
