"""Rebinding: 150 traffic queries whose operators change threads, measured on two and simulated on 24."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from lab.bench.measuring.rates import Lengths
from lab.bench.measuring.report import Options, Report, progress
from lab.bench.rebinding.costs import measure_costs
from lab.bench.rebinding.experiments import (
    BLOCKING,
    CONSTANT,
    SEARCH_SEEDS,
    VARYING,
    RebindingExtent,
    Simulated,
    simulate_all,
)
from lab.bench.rebinding.machine import measure_server
from lab.bench.rebinding.measured import (
    QUERIES,
    WORKERS,
    agents_for,
    measure_all,
    measured_summary,
    operators_by_kind,
    queries_graph,
)
from lab.bench.rebinding.plots import draw_blocking, draw_constant, draw_measured, draw_varying
from lab.bench.rebinding.simulated import (
    SUSTAINED,
    Outcomes,
    installations_compared,
    late_from_s,
    simulations,
    summary,
)
from lab.sim.arrivals import morning
from lab.sim.rebinding import SERVER, STATIC, Setting
from lab.sim.traffic_load import TrafficLoad
from penstock.binding.greedy import DEFAULT_TOLERANCE

DEFAULT = RebindingExtent(20.0, 25.0, 6, 3, Lengths(1.5, 2.0), 2, 1.0)
FULL = RebindingExtent(60.0, 120.0, 10, 5, Lengths(10.0, 60.0), 5, 2.0)


def run(options: Options) -> Report:
    """Measures on two threads, then simulates 24 with operators and queues that cost what they cost here."""
    plan = FULL if options.full else DEFAULT
    costs, server = measure_costs(), measure_server()
    progress(
        f"rebinding: a tuple costs {costs.gather_ns:.1f} ns to collect, {costs.scan_ns:.1f} ns to average, "
        f"{costs.sort_ns:.2f} ns a doubling to rank; {server}"
    )
    agents = agents_for(Lengths(0.5, 1.5))
    measured = measure_all(agents, plan.measured, plan.rounds, plan.rebind_every_s)
    measured_figures = {system: measured_summary(runs) for system, runs in measured.items()}
    with simulations() as several:
        simulated = simulate_all(several, plan, costs, server.machine(SERVER))
    out = options.out
    return Report(
        name="rebinding",
        settings={
            "queries": QUERIES,
            "measured_workers": WORKERS,
            "measured_agents": agents,
            "measured_operators": operators_by_kind(queries_graph(agents, real_time=True)),
            "simulated_threads": Setting().threads,
            "simulated_costs_measured_here": {**asdict(costs), **asdict(server)},
            "simulated_costs_assumed": assumed(),
            "greedy_tolerance": DEFAULT_TOLERANCE,
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


def assumed() -> dict[str, Any]:
    """What the simulation takes for granted; ``figures.sensitivity`` shows how much rests on it."""
    load = TrafficLoad()
    return {
        "operator_switch_ns": SERVER.operator_switch_ns,
        "block_events": load.block,
        "block_ns": load.block_ns,
        "jitter": load.jitter,
        "remarks": [
            "the paper does not say how many tuples a task has; the single queue's result depends on it",
            "queue and barrier are timed without the contention of 24 threads, which two cores cannot show",
            "caches, memory bandwidth and hyper-threads are not simulated",
        ],
    }


def headline(simulated: Simulated) -> dict[str, Any]:
    """What the paper's claims come to at the highest load that greedy sustains."""
    shares = {variant: _mean(runs, "under_20ms") for variant, runs in simulated.at_highest.items()}
    best = max(STATIC, key=shares.__getitem__)
    return {
        "under_20ms_greedy": shares["greedy"],
        "under_20ms_greedy_by_type": shares["greedy_by_type"],
        "under_20ms_static_best": shares[best],
        "under_20ms_single_queue": shares["single_queue"],
        "static_best": best,
        "highest_agents_greedy": simulated.highest,
        "under_20ms_greedy_whole_run": _mean(simulated.at_highest["greedy"], "under_20ms_whole"),
        "non_blocking_vs_blocking": {
            f"{BLOCKING} agents": installations_compared(simulated.blocking, "greedy_eager"),
            f"{simulated.highest} agents": installations_compared(simulated.at_highest, "greedy_eager"),
            "wandering": installations_compared(simulated.wandering),
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
    figures["sensitivity"] = simulated.sensitivity
    return figures


def ratios(at_highest: Outcomes) -> dict[str, float]:
    """At the highest load: results in time against the best static order, and what barriers cost."""
    in_time = {variant: _mean(runs, "under_20ms") for variant, runs in at_highest.items()}
    return {
        "under_20ms_greedy_vs_static_best": in_time["greedy"] / max(in_time[order] for order in STATIC),
        **{
            f"{name}_non_blocking_vs_blocking": _mean(at_highest["greedy_eager"], f"{name}_ms")
            / _mean(at_highest["greedy_eager_blocking"], f"{name}_ms")
            for name in ("p50", "p99")
        },
    }


def _mean(outcomes: Sequence[Any], name: str) -> float:
    return sum(float(getattr(outcome, name)) for outcome in outcomes) / len(outcomes)
