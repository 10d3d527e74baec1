"""RIoTBench, as EdgeWise was measured: a scheduler with two workers against one thread per operator."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import threadpoolctl  # type: ignore[import-untyped]

from lab.bench.measuring.rates import Lengths
from lab.bench.measuring.report import Options, Report, median, progress
from lab.bench.riot.operators import OperatorFigures, operator_figures
from lab.bench.riot.plots import draw_consumption, draw_curves, draw_queues, draw_variation
from lab.bench.riot.rates import ratio_interval, rounds_ratios, search_rates
from lab.bench.riot.runs import (
    BLOCK,
    SETTINGS,
    SYSTEMS,
    WORKERS,
    RatePoint,
    RiotExtent,
    RiotTopology,
    in_turn,
    median_point,
    plain,
)
from lab.workloads.riot import INSTANCES, TOPOLOGIES

#: Rates of a curve, as shares of what the faster system processes when all messages are there at once.
SHARES = (0.15, 0.4, 0.6, 0.8, 0.95)
#: Those at which queues are looked into, as in figures 9 and 10.
LEVELS = {"low": 0.15, "medium": 0.6, "high": 0.8}
#: What a turn takes of its queue (figure 11). All of it is the default, and so on the curve of STATS.
CONSUMPTIONS: dict[str, str | int] = {"half": "half", **{f"at most {n}": n for n in (10, 50, 250)}}
_SWEPT = (0.4, 0.6, 0.8)
_SEARCHED_FROM = 0.4  # near where STATS leaves 100 ms: turns on few messages cost more a message
_LIMIT_ROUNDS = 2
#: Messages of the run that finds out what is possible; the first of them only warm up.
_MESSAGES = {"pred": 8_000, "stats": 1_500, "etl": 4_000, "train": 80}

Curves = dict[str, dict[str, list[RatePoint]]]  # by topology and system
Queues = dict[str, dict[str, dict[str, OperatorFigures]]]  # by system, level and operator


DEFAULT = RiotExtent(
    Lengths(0.4, 1), 1, Lengths(0.4, 1.2), 5, growth=1.2, steps=2, confirmation=Lengths(0.4, 1.8)
)
FULL = RiotExtent(Lengths(10, 60), 5, Lengths(10, 60), 9, growth=1.2, steps=5, confirmation=Lengths(10, 60))


def run(options: Options) -> Report:
    """All curves, the queues of PRED, the consumption sweep and the highest rates of STATS."""
    plan = FULL if options.full else DEFAULT
    with tempfile.TemporaryDirectory(prefix="penstock-riot-") as name, _one_library_thread():
        topologies = {topology: RiotTopology(topology, Path(name)) for topology in TOPOLOGIES}
        limits = {topology: _limits(topologies[topology]) for topology in TOPOLOGIES}
        curves: Curves = {}
        queues: Queues = {}
        for topology in TOPOLOGIES:
            most = max(limits[topology].values())
            curves[topology], found = measure_curves(topologies[topology], most, plan)
            queues = found if topology == "pred" else queues
        most = max(limits["stats"].values())
        consumption = measure_consumption(topologies["stats"], most, plan)
        rates = search_rates(topologies["stats"], _SEARCHED_FROM * most, plan)
    consumption = {"all": curves["stats"]["congestion"], **consumption}
    ratios = rounds_ratios(rates)
    ratio, low, high = ratio_interval(ratios)
    out = options.out
    return Report(
        name="riot",
        settings={
            "workers": WORKERS,
            "block_events": BLOCK,
            "instances": INSTANCES,
            "sensors": SETTINGS.sensors,
            "publish": "rows encoded as JSON, no broker",
            "plan": asdict(plan),
        },
        figures={
            "stats_ratio_low": low,
            "stats_ratio_high": high,
            "stats_ratio_is_above_1": low > 1.0,  # significantly: the 95 % interval is
            "stats_ratio_rounds": ratios,
            "stats_rate_under_100ms": rates,
            "messages_per_s_at_once": limits,
            "curves": {topology: _plain_curves(systems) for topology, systems in curves.items()},
            "consumption": _plain_curves(consumption),
            "pred_operators": {
                system: {level: {op: asdict(of) for op, of in ops.items()} for level, ops in levels.items()}
                for system, levels in queues.items()
            },
        },
        ratios={"stats_rate_under_100ms_congestion_vs_threads": ratio},
        plots=(
            draw_curves(curves, out / "riot-curves.png"),
            draw_consumption(
                {**consumption, "a thread per operator": curves["stats"]["threads"]},
                out / "riot-consumption.png",
            ),
            draw_variation(curves, out / "riot-utilisation.png"),
            draw_queues(queues, out / "riot-queues.png"),
        ),
    )


def measure_curves(
    topology: RiotTopology, most: float, plan: RiotExtent
) -> tuple[dict[str, list[RatePoint]], Queues]:
    """Both systems at the same rates, in turn; and their operators at three rates, of the last round."""
    points: dict[str, dict[float, list[RatePoint]]] = {system: {} for system in SYSTEMS}
    queues: Queues = {system: {} for system in SYSTEMS}
    levels = {share: level for level, share in LEVELS.items()}
    for number in range(plan.curve_rounds):
        for share in SHARES:
            for system in in_turn(tuple(SYSTEMS), number):
                paced, point = topology.run_counted(SYSTEMS[system], share * most, plan.curve)
                points[system].setdefault(share, []).append(point)
                if share in levels:
                    queues[system][levels[share]] = operator_figures(paced.metrics)
                progress(
                    f"riot: {topology.name}, {system} at {point.rate:,.0f}/s: "
                    f"median {point.p50_ms:.1f} ms, p99 {point.p99_ms:.1f} ms"
                )
    curves = {
        system: [median_point(found) for found in by_share.values()] for system, by_share in points.items()
    }
    return curves, queues


def measure_consumption(topology: RiotTopology, most: float, plan: RiotExtent) -> dict[str, list[RatePoint]]:
    """Congestion-aware scheduling with other rules for how much a turn takes."""
    points: dict[str, dict[float, list[RatePoint]]] = {rule: {} for rule in CONSUMPTIONS}
    for _ in range(plan.curve_rounds):
        for share in _SWEPT:
            for rule, consumption in CONSUMPTIONS.items():
                node = replace(SYSTEMS["congestion"], consumption=consumption)
                _, point = topology.run_counted(node, share * most, plan.curve)
                points[rule].setdefault(share, []).append(point)
                progress(
                    f"riot: {topology.name}, turns take {rule}, at {point.rate:,.0f}/s: "
                    f"median {point.p50_ms:.1f} ms, p99 {point.p99_ms:.1f} ms"
                )
    return {rule: [median_point(found) for found in by_share.values()] for rule, by_share in points.items()}


def _limits(topology: RiotTopology) -> dict[str, float]:
    """Messages a second of each system if all are there at once, the median of a few runs in turn; kernels
    are compiled before."""
    messages = _MESSAGES[topology.name]
    for node in SYSTEMS.values():
        topology.run_all(node, messages // 10)
    found: dict[str, list[float]] = {system: [] for system in SYSTEMS}
    for number in range(_LIMIT_ROUNDS):
        for system in in_turn(tuple(SYSTEMS), number):
            metrics = topology.run_all(SYSTEMS[system], messages)
            found[system].append(metrics.read / metrics.elapsed_s)
    limits = {system: median(rates) for system, rates in found.items()}
    progress(
        f"riot: {topology.name}, all at once: "
        + ", ".join(f"{system} {limit:,.0f} messages/s" for system, limit in limits.items())
    )
    return limits


def _plain_curves(systems: Mapping[str, Sequence[RatePoint]]) -> dict[str, list[dict[str, Any]]]:
    return {system: plain(points) for system, points in systems.items()}


@contextmanager
def _one_library_thread() -> Iterator[None]:
    """Trainings compute within the thread that runs them: BLAS threads of their own would blur who runs."""
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield
