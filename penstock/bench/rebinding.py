"""Rebinding: 150 traffic queries whose operators change threads, measured on two and simulated on 24."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from penstock.bench.rates import Lengths
from penstock.bench.rebinding_costs import FrameCosts, measure_costs
from penstock.bench.rebinding_measured import (
    QUERIES,
    WORKERS,
    agents_for,
    measure_all,
    measured_summary,
    operators_by_kind,
    queries_graph,
)
from penstock.bench.rebinding_plots import draw_blocking, draw_constant, draw_measured, draw_varying
from penstock.bench.rebinding_simulated import (
    SUSTAINED,
    Job,
    Outcome,
    Outcomes,
    Simulations,
    installations_compared,
    late_from_s,
    simulations,
    summary,
)
from penstock.bench.report import Options, Report, progress
from penstock.sim.arrivals import morning
from penstock.sim.rebinding import DEADLINE_MS, SERVER, STATIC, VARIANTS, Setting
from penstock.sim.traffic_load import TrafficLoad, wandering

#: The paper's loads, in agents: figures 2, 3 and 4.
BLOCKING, CONSTANT, VARYING = 120_000, 220_000, 300_000
INSTALLATIONS = ("greedy_blocking", "greedy")
#: Drawn in figures 3 and 4.
POLICIES = (*STATIC, "single_queue", "greedy")
WANDERING = ("static_by_type", "static_shuffled", "single_queue", "greedy")
#: Tuples in a task: what the single queue's result depends on, and the paper does not say.
BLOCKS = (512, 1_024, 4_096, 65_536)
#: The highest load is searched with these and evaluated with others.
SEARCH_SEEDS = (1_001, 1_002)
_WANDERING_SHARE = 0.9  # of the highest load


@dataclass(frozen=True)
class Plan:
    """How long and how often: the paper repeats everything five times."""

    seconds: float  # of a simulated run under a constant load
    morning_s: float  # that four hours are squeezed into
    seeds: int  # where installations are compared, whose differences are small
    other_seeds: int
    measured: Lengths
    rounds: int
    rebind_every_s: float  # measured; simulated it is always the paper's 2 s


DEFAULT = Plan(20.0, 30.0, 5, 3, Lengths(2.0, 3.0), 2, 1.0)
FULL = Plan(60.0, 120.0, 5, 5, Lengths(10.0, 60.0), 5, 2.0)


@dataclass(frozen=True)
class Simulated:
    """All simulated experiments."""

    highest: int
    at_highest: Outcomes
    blocking: Outcomes
    constant: Outcomes
    varying: Outcomes
    wandering: Outcomes
    blocks: dict[int, Outcome]  # the single queue by the size of its tasks


def run(options: Options) -> Report:
    """Measures on two threads, then simulates 24 with operators that cost what they cost here."""
    plan = FULL if options.full else DEFAULT
    costs = measure_costs()
    progress(
        f"rebinding: a tuple costs {costs.gather_ns:.1f} ns to collect, {costs.scan_ns:.1f} ns to average, "
        f"{costs.sort_ns:.2f} ns a doubling to rank"
    )
    agents = agents_for(Lengths(0.5, 1.5))
    measured = measure_all(agents, plan.measured, plan.rounds, plan.rebind_every_s)
    measured_figures = {system: measured_summary(runs) for system, runs in measured.items()}
    with simulations() as several:
        simulated = simulate_all(several, plan, costs)
    out = options.out
    return Report(
        name="rebinding",
        settings={
            "queries": QUERIES,
            "measured_workers": WORKERS,
            "measured_agents": agents,
            "measured_operators": operators_by_kind(queries_graph(agents, real_time=True)),
            "simulated_threads": Setting().threads,
            "simulated_costs_measured_here": asdict(costs),
            "simulated_costs_chosen": {
                **asdict(SERVER),
                "block_events": TrafficLoad().block,
                "block_ns": TrafficLoad().block_ns,
                "jitter": TrafficLoad().jitter,
            },
            "settled_s": Setting().settled_s,
            "search_seeds": SEARCH_SEEDS,
            "search_share": SUSTAINED,
            "plan": asdict(plan),
        },
        figures={
            **headline(simulated),
            **simulated_figures(simulated),
            "measured": measured_figures,
        },
        ratios=ratios(simulated.at_highest),
        plots=(
            draw_blocking(simulated.blocking, BLOCKING, out / "rebinding-figure-2.png"),
            draw_constant(simulated.constant, CONSTANT, out / "rebinding-figure-3.png"),
            draw_constant(
                simulated.at_highest,
                simulated.highest,
                out / "rebinding-highest.png",
                "the most that greedy sustains",
            ),
            draw_varying(
                simulated.varying,
                morning(VARYING, plan.morning_s).tolist(),
                plan.morning_s,
                out / "rebinding-figure-4.png",
            ),
            draw_measured(
                {system: of["distribution"] for system, of in measured_figures.items()},
                agents,
                out / "rebinding-measured.png",
            ),
        ),
    )


def simulate_all(several: Simulations, plan: Plan, costs: FrameCosts) -> Simulated:
    """The paper's three experiments, the highest load, and what the paper leaves open."""
    setting = Setting(seconds=plan.seconds)
    seeds, others = range(plan.seeds), range(plan.other_seeds)

    def load(agents: Any) -> TrafficLoad:
        return costs.load(TrafficLoad(agents))

    highest = several.highest_agents(
        "greedy", load(CONSTANT), setting, SEARCH_SEEDS, accuracy=0.02, tell=_tell_search
    )
    at_highest = {
        **several.compare(
            load(highest), [name for name in VARIANTS if name not in INSTALLATIONS], setting, others
        ),
        **several.compare(load(highest), INSTALLATIONS, setting, seeds),
    }
    _tell(f"{highest:,} agents, the most that greedy sustains", at_highest)
    blocking = several.compare(load(BLOCKING), INSTALLATIONS, setting, seeds)
    _tell(f"{BLOCKING:,} agents", blocking)
    constant = several.compare(load(CONSTANT), POLICIES, setting, others)
    _tell(f"{CONSTANT:,} agents", constant)
    squeezed = Setting(seconds=plan.morning_s, settled_s=0.0)
    varying = several.compare(load(morning(VARYING, plan.morning_s)), POLICIES, squeezed, others)
    _tell(f"up to {VARYING:,} agents", varying)
    agents = round(highest * _WANDERING_SHARE)
    roads = several.compare(
        lambda seed: load(wandering(agents, plan.seconds, seed=seed)), WANDERING, setting, others
    )
    _tell("traffic that wanders between roads", roads)
    sized = [Job("single_queue", replace(load(CONSTANT), block=block), setting, 0) for block in BLOCKS]
    blocks = dict(zip(BLOCKS, several.run(sized), strict=True))
    return Simulated(highest, at_highest, blocking, constant, varying, roads, blocks)


def headline(simulated: Simulated) -> dict[str, Any]:
    """What the paper's claims come to at the highest load that greedy sustains."""
    shares = {variant: _mean(runs, "under_20ms") for variant, runs in simulated.at_highest.items()}
    best = max(STATIC, key=shares.__getitem__)
    return {
        "under_20ms_greedy": shares["greedy"],
        "under_20ms_static_best": shares[best],
        "under_20ms_single_queue": shares["single_queue"],
        "static_best": best,
        "highest_agents_greedy": simulated.highest,
        "under_20ms_greedy_whole_run": _mean(simulated.at_highest["greedy"], "under_20ms_whole"),
        "non_blocking_vs_blocking": {
            f"{BLOCKING} agents": installations_compared(simulated.blocking),
            f"{simulated.highest} agents": installations_compared(simulated.at_highest),
        },
    }


def simulated_figures(simulated: Simulated) -> dict[str, Any]:
    """Every experiment by name."""
    experiments = {
        "simulated_highest": simulated.at_highest,
        f"simulated_{BLOCKING}": simulated.blocking,
        f"simulated_{CONSTANT}": simulated.constant,
        f"simulated_up_to_{VARYING}": simulated.varying,
        "simulated_wandering": simulated.wandering,
    }
    figures: dict[str, Any] = {
        name: {variant: summary(runs) for variant, runs in outcomes.items()}
        for name, outcomes in experiments.items()
    }
    figures["late_from_s"] = {variant: late_from_s(runs) for variant, runs in simulated.varying.items()}
    figures["under_20ms_single_queue_by_block"] = {
        str(block): outcome.under_20ms for block, outcome in simulated.blocks.items()
    }
    return figures


def ratios(at_highest: Outcomes) -> dict[str, float]:
    """At the highest load: results in time against the best static order, and what barriers cost."""
    in_time = {variant: _mean(runs, "under_20ms") for variant, runs in at_highest.items()}
    return {
        "under_20ms_greedy_vs_static_best": in_time["greedy"] / max(in_time[order] for order in STATIC),
        **{
            f"{name}_non_blocking_vs_blocking": _mean(at_highest["greedy"], f"{name}_ms")
            / _mean(at_highest["greedy_blocking"], f"{name}_ms")
            for name in ("p50", "p99")
        },
    }


def _mean(outcomes: Sequence[Any], name: str) -> float:
    return sum(float(getattr(outcome, name)) for outcome in outcomes) / len(outcomes)


def _tell_search(agents: int, share: float) -> None:
    progress(f"rebinding: simulated, greedy with {agents:,} agents: {share:.4f} within {DEADLINE_MS:.0f} ms")


def _tell(what: str, outcomes: Outcomes) -> None:
    found = ", ".join(f"{variant} {_mean(runs, 'under_20ms'):.4f}" for variant, runs in outcomes.items())
    progress(f"rebinding: simulated, {what}, within {DEADLINE_MS:.0f} ms: {found}")
