"""The paper's cluster in the model of ``sim.cluster``: figures 12 to 19 of ms-stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from lab.bench.measuring.report import progress
from lab.sim.cluster import SYSTEMS, Cluster, Result, application_for, bottleneck, evaluate
from lab.sim.cluster_apps import APPLICATIONS

ZIPF = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
#: The paper's data set is not public; its items are about as skewed as this.
REAL = 0.9
NODE_SYSTEMS = ("storm", "r_storm", "ms_stream_nodes")
ALL_SYSTEMS = ("pstream", "pkg", "r_storm", "storm", "ms_stream")
NODE_RATE, ALL_RATE, SEVERAL_RATE = 5_000.0, 8_000.0, 2_000.0
HIGH_RATE = 28_000.0
SEVERAL = (1, 2, 3, 4, 5)

Curves = dict[str, list[float]]


def simulate(cluster: Cluster, seeds: int, zipf: Sequence[float] = ZIPF) -> dict[str, Any]:
    """Every figure's curves, by the paper's number: means over clusters and hash functions of other seeds."""
    found = [_simulated(replace(cluster, seed=cluster.seed + seed), zipf) for seed in range(seeds)]
    progress(f"placement: simulated {seeds} clusters")
    together: dict[str, Any] = _mean(found)
    return together


def _mean(values: Sequence[Any]) -> Any:
    """Of numbers, and of what holds numbers in the same places; what is no number is that of the first."""
    first = values[0]
    if isinstance(first, dict):
        return {name: _mean([value[name] for value in values]) for name in first}
    if isinstance(first, list):
        return [_mean(list(some)) for some in zip(*values, strict=True)]
    if isinstance(first, float):
        return sum(values) / len(values)
    return first


def _simulated(cluster: Cluster, zipf: Sequence[float]) -> dict[str, Any]:
    found: dict[str, Any] = {"figure_12": _imbalance(cluster, zipf)}
    for number, name in zip((13, 14), APPLICATIONS, strict=True):
        found[f"figure_{number}"] = {
            system: [
                bottleneck(
                    cluster, SYSTEMS[system], application_for(SYSTEMS[system], name, skew, cluster.seed)
                )
                for skew in zipf
            ]
            for system in NODE_SYSTEMS
        }
        looked = {
            system: [_at(cluster, system, name, skew, NODE_RATE) for skew in zipf] for system in NODE_SYSTEMS
        }
        found[f"figure_{number + 2}"] = {
            system: [outcome.latency_ms for outcome in outcomes] for system, outcomes in looked.items()
        }
        found[f"outcomes_{name}"] = {
            system: [asdict(replace(outcome, placement=())) for outcome in outcomes]
            for system, outcomes in looked.items()
        }
        # At the paper's rate queues are short; this is nearer to what the nodes can do.
        found[f"latency_{name}_at_{HIGH_RATE:.0f}"] = {
            system: [_at(cluster, system, name, skew, HIGH_RATE).latency_ms for skew in zipf]
            for system in NODE_SYSTEMS
        }
    found["figure_17"] = {
        system: {
            name: bottleneck(
                cluster, SYSTEMS[system], application_for(SYSTEMS[system], name, REAL, cluster.seed)
            )
            for name in APPLICATIONS
        }
        for system in ALL_SYSTEMS
    }
    found["figure_18"] = {
        system: {name: _at(cluster, system, name, REAL, ALL_RATE).latency_ms for name in APPLICATIONS}
        for system in ALL_SYSTEMS
    }
    found["figure_19"] = {
        system: [
            _at(cluster, system, "top_n", REAL, SEVERAL_RATE, applications).latency_ms
            for applications in SEVERAL
        ]
        for system in ALL_SYSTEMS
    }
    return found


def _imbalance(cluster: Cluster, zipf: Sequence[float]) -> Curves:
    """LIN where Storm's scheduler has placed the tasks, at four times the rate of the latency figures."""
    return {
        name: [_at(cluster, "storm", name, skew, NODE_RATE * 4).lin for skew in zipf] for name in APPLICATIONS
    }


def _at(
    cluster: Cluster, system: str, application: str, zipf: float, rate: float, applications: int = 1
) -> Result:
    chosen = SYSTEMS[system]
    return evaluate(
        cluster, chosen, application_for(chosen, application, zipf, cluster.seed), rate, applications
    )


def simulated_ratios(found: dict[str, Any]) -> dict[str, float]:
    """Ms-Stream against Storm and against the best of the others, as the paper states its gains."""

    def mean(values: Any) -> float:
        return sum(values) / len(values) if values else math.nan

    throughput = {system: mean(list(by_app.values())) for system, by_app in found["figure_17"].items()}
    latency = {system: mean(list(by_app.values())) for system, by_app in found["figure_18"].items()}
    others = [system for system in throughput if system != "ms_stream"]
    return {
        "simulated_bottleneck_ms_stream_over_storm": throughput["ms_stream"] / throughput["storm"],
        "simulated_bottleneck_ms_stream_over_best_other": throughput["ms_stream"]
        / max(throughput[system] for system in others),
        "simulated_latency_storm_over_ms_stream": latency["storm"] / latency["ms_stream"],
        "simulated_latency_best_other_over_ms_stream": min(latency[system] for system in others)
        / latency["ms_stream"],
        "simulated_bottleneck_placement_alone_over_storm_zipf_1": mean(
            [found[f]["ms_stream_nodes"][-1] / found[f]["storm"][-1] for f in ("figure_13", "figure_14")]
        ),
    }
