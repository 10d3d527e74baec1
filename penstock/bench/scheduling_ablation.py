"""The ablation: threads or scheduling, queues or blocks, at three sizes of hand-over (enjima figure 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from penstock.bench.rates import Lengths
from penstock.bench.report import median, progress
from penstock.bench.scheduling_rates import spread
from penstock.bench.scheduling_systems import WORKLOADS, ablation, hand_over_sizes, handing_over, unpaced

#: As in the paper: one query of each, on two cores.
ABLATED = ("yahoo", "linear_road")

#: Workload → hand-over size → system → events per second, one for every round.
Throughput = dict[str, dict[int, dict[str, list[float]]]]


def measure_ablation(rounds: int, lengths: Lengths) -> Throughput:
    """As fast as one query goes; the systems take turns in every round."""
    found: Throughput = {
        name: {size: {system: [] for system in ablation()} for size in hand_over_sizes()} for name in ABLATED
    }
    for number in range(rounds):
        for workload, by_size in found.items():
            for size, by_system in by_size.items():
                for system, node in ablation().items():
                    run = unpaced(WORKLOADS[workload], handing_over(node, size), 1, lengths)
                    by_system[system].append(run.read / run.elapsed_s)
            told = {size: _millions(by_system) for size, by_system in by_size.items()}
            progress(f"scheduling: ablation, {workload}, round {number + 1} of {rounds}, M/s: {told}")
    return found


def ablation_ratios(found: Throughput, size: int) -> dict[str, float]:
    """Full over threads on blocks: medians of the rounds' ratios by workload, and their geometric mean."""
    by_workload = {
        workload: median(
            [full / other for full, other in zip(by_size[size]["full"], by_size[size]["TM"], strict=True)]
        )
        for workload, by_size in found.items()
    }
    together = prod(by_workload.values()) ** (1 / len(by_workload))
    return {
        "full_vs_tm": together,
        **{f"full_vs_tm_{workload}": ratio for workload, ratio in by_workload.items()},
    }


def ablation_figures(found: Throughput) -> dict[str, object]:
    """Throughput with intervals."""
    return {
        workload: {
            str(size): {system: spread(values) for system, values in by_system.items()}
            for size, by_system in by_size.items()
        }
        for workload, by_size in found.items()
    }


def _millions(by_system: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {system: round(values[-1] / 1e6, 3) for system, values in by_system.items()}
