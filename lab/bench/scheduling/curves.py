"""Throughput and latency over the number of queries, by policy and workload (enjima figures 5 and 8)."""

from __future__ import annotations

from dataclasses import dataclass

from lab.bench.measuring.rates import Lengths, all_queries, interval
from lab.bench.measuring.report import progress
from lab.bench.scheduling.systems import WORKLOADS, Workload, paced, systems, unpaced

#: How far above what the state-based policy does at the largest number of queries its rate there is.
_OVERLOAD = 1.1


@dataclass(frozen=True)
class CurvePoint:
    """One system, workload and number of queries: means over the runs, and the throughput's interval."""

    asked: float  # events per second that were due
    achieved: float
    low: float
    high: float
    mean_ms: float
    p99_ms: float


#: Workload → system → number of queries.
Curves = dict[str, dict[str, dict[int, CurvePoint]]]


def measure_curves(
    queries: tuple[int, ...], lengths: Lengths, rounds: int, known: dict[str, float]
) -> Curves:
    """The rate of a query stays the same, as in the paper; the largest number of queries is too much.

    ``known``: what a workload's largest number of queries sustains, where that is known already.
    """
    curves: Curves = {}
    for name, workload in WORKLOADS.items():
        top = known.get(name) or _saturated(workload, max(queries), lengths)
        asked = {count: _rate(workload, top * _OVERLOAD, count, max(queries)) for count in queries}
        curves[name] = {system: {} for system in systems()}
        for count in queries:
            for system, node in systems().items():
                runs = [paced(workload, node, count, asked[count], lengths) for _ in range(rounds)]
                achieved, low, high = interval([run.achieved for run in runs])
                latencies = [all_queries(run.metrics).mean_ms for run in runs]
                p99_ms = interval([run.p99_ms for run in runs])[0]
                mean_ms = interval(latencies)[0]
                curves[name][system][count] = CurvePoint(asked[count], achieved, low, high, mean_ms, p99_ms)
            best = max(curves[name].values(), key=lambda points: points[count].achieved)[count]
            progress(
                f"scheduling: {name}, {count} queries: {asked[count] / 1e6:.2f} M/s asked, "
                f"the best does {best.achieved / 1e6:.2f}"
            )
    return curves


def curve_figures(curves: Curves) -> dict[str, object]:
    """For the report: everything by name."""
    return {
        workload: {
            system: {str(count): vars(point) for count, point in points.items()}
            for system, points in by_system.items()
        }
        for workload, by_system in curves.items()
    }


def _saturated(workload: Workload, queries: int, lengths: Lengths) -> float:
    run = unpaced(workload, systems()["state"], queries, lengths)
    return run.read / run.elapsed_s


def _rate(workload: Workload, top: float, count: int, most: int) -> float:
    """The rate of the first ``count`` queries if ``most`` of them have ``top`` together."""
    return sum(workload.rates(most, top)[:count])
