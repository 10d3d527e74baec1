"""The ablation: threads or scheduling, queues or blocks, at three sizes of hand-over (enjima figure 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from lab.bench.measuring.rates import Lengths
from lab.bench.measuring.report import median, progress
from lab.bench.scheduling.rates import spread
from lab.bench.scheduling.systems import WORKLOADS, ablation, hand_over_sizes, handing_over, unpaced
from penstock.metrics.run import RunMetrics


@dataclass(frozen=True)
class Case:
    """Queries of one workload, hand-over sizes, and the systems that are compared there."""

    workload: str
    queries: int
    sizes: tuple[int, ...]
    systems: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.workload}_{self.queries}"


#: Case → hand-over size → system → events per second, one for every round.
Throughput = dict[str, dict[int, dict[str, list[float]]]]

#: Case → system → its runs with one query and the largest hand-overs, of which the profile is made.
Profiled = dict[str, dict[str, list[RunMetrics]]]

#: Single rounds differ by half; the ratio of one query on blocks is taken from so many more.
PAIRS = 8
QUERIES = 6  # as in the paper's other experiments


def cases(*, full: bool) -> list[Case]:
    """One query of each workload at every size, as in the paper, and six of them beside it."""
    everything = tuple(ablation())
    one = [Case(name, 1, hand_over_sizes(), everything) for name in ("yahoo", "linear_road")]
    if full:
        return one + [replace(case, queries=QUERIES) for case in one]
    return one + [Case(case.workload, QUERIES, hand_over_sizes()[-1:], ("TM", "full")) for case in one]


def measure_ablation(
    measured: Sequence[Case], rounds: int, lengths: Lengths, of_pairs: Lengths
) -> tuple[Throughput, Profiled]:
    """As fast as the queries go; the systems take turns in every round.

    Runs with the largest hand-overs, which are the slowest to begin and the ones that are compared, take
    ``of_pairs``: six threads of Linear Road may read nothing for a tenth of a second.
    """
    found: Throughput = {
        str(case): {size: {system: [] for system in case.systems} for size in case.sizes} for case in measured
    }
    for number in range(rounds):
        for case in measured:
            by_size = found[str(case)]
            for size, by_system in by_size.items():
                for system in case.systems:
                    node = handing_over(ablation()[system], size)
                    length = of_pairs if size == case.sizes[-1] else lengths
                    run = unpaced(WORKLOADS[case.workload], node, case.queries, length)
                    by_system[system].append(run.read / run.elapsed_s)
            told = {size: _millions(by_system) for size, by_system in by_size.items()}
            progress(f"scheduling: ablation, {case}, round {number + 1} of {rounds}, M/s: {told}")
    profiled: Profiled = {}
    for number in range(PAIRS):
        for case in measured:
            if case.queries == 1:
                runs = profiled.setdefault(str(case), {"TM": [], "full": []})
                by_system = found[str(case)][case.sizes[-1]]
                _measure_pair(case, by_system, runs, of_pairs, turned=number % 2 == 1)
        progress(f"scheduling: ablation, pair {number + 1} of {PAIRS}")
    return found, profiled


def _measure_pair(
    case: Case,
    by_system: dict[str, list[float]],
    profiled: dict[str, list[RunMetrics]],
    lengths: Lengths,
    *,
    turned: bool,
) -> None:
    """Threads and scheduling on blocks once more, next to each other: their ratio is what is asked for."""
    for system in ("full", "TM") if turned else ("TM", "full"):
        node = handing_over(ablation()[system], case.sizes[-1])
        run = unpaced(WORKLOADS[case.workload], node, case.queries, lengths)
        by_system[system].append(run.read / run.elapsed_s)
        profiled[system].append(run)


def profile_figures(profiled: Profiled) -> dict[str, object]:
    """What each operator of one query takes of one processor, and what an event costs it; medians. With a
    thread for every operator that includes the waiting for a processor and for the interpreter lock."""
    return {
        case: {
            system: {
                one.id: {
                    "busy_share": median([run[one.id].busy_ns / run.elapsed_s / 1e9 for run in runs]),
                    "event_ns": median([run[one.id].cost_ns for run in runs]),
                }
                for one in runs[0].operators
            }
            for system, runs in by_system.items()
        }
        for case, by_system in profiled.items()
    }


def ablation_ratios(found: Throughput, size: int) -> dict[str, float]:
    """Full over threads on blocks: medians of the rounds' ratios by case; together, the geometric mean over
    the cases of one query, which are the paper's."""
    by_case = {
        case: median(
            [full / other for full, other in zip(by_size[size]["full"], by_size[size]["TM"], strict=True)]
        )
        for case, by_size in found.items()
    }
    one = [ratio for case, ratio in by_case.items() if case.endswith("_1")]
    return {
        "full_vs_tm": prod(one) ** (1 / len(one)),
        **{f"full_vs_tm_{case}": ratio for case, ratio in by_case.items()},
    }


def ablation_figures(found: Throughput) -> dict[str, object]:
    """Throughput with intervals."""
    return {
        case: {
            str(size): {system: spread(values) for system, values in by_system.items()}
            for size, by_system in by_size.items()
        }
        for case, by_size in found.items()
    }


def _millions(by_system: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {system: round(values[-1] / 1e6, 3) for system, values in by_system.items()}
