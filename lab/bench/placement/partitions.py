"""Every partitioner on the task graphs of our workloads, measured here, and on random ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lab.baselines.random_graphs import layered
from lab.bench.measuring.rates import Lengths, run_unpaced
from lab.bench.measuring.report import median, progress
from lab.sim.cluster_apps import comm_count, top_n
from lab.workloads.mix import linear_road_queries, mix_queries
from penstock.app import App
from penstock.connectors.memory.discard import Discard
from penstock.engine.node import Node
from penstock.placement.catalogue import PARTITIONERS
from penstock.placement.measured import measured_graph
from penstock.placement.network import check_installed
from penstock.placement.partitioner import Partitioner
from penstock.placement.quality import Quality
from penstock.placement.task_graph import TaskGraph
from penstock.query.errors import PenstockError
from penstock.query.graph import Graph
from penstock.workloads.traffic.queries import replicated
from penstock.workloads.traffic.settings import TrafficSettings
from penstock.workloads.traffic.source import Traffic

BASELINE = "round_robin"
GROUPS = (2, 4, 8)
_LENGTHS = Lengths(0.3, 0.7)


@dataclass(frozen=True)
class Partitioned:
    """One partitioner on one graph."""

    graph: str
    tasks: int
    groups: int
    partitioner: str
    quality: Quality
    ms: float


def available() -> dict[str, Partitioner]:
    """The partitioners that are installed: the network is an optional extra."""
    found = {name: make() for name, make in PARTITIONERS.items()}
    try:
        check_installed()
    except PenstockError as error:
        progress(f"placement: {error}")
        del found["network"]
    return found


def task_graphs(random_graphs: int) -> Iterator[tuple[str, TaskGraph]]:
    """Measured workloads, the paper's two applications, and random topologies."""
    for name, write in _WORKLOADS.items():
        app = App(f"placement-{name}")
        write(app)
        graph = app.graph()
        yield name, _measured(graph)
    for name, application in (("comm_count", comm_count(1.0)), ("top_n", top_n(1.0))):
        yield name, application.task_graph(5_000.0)
    for seed in range(random_graphs):
        # few sizes: the network compiles for each
        yield f"random_{seed}", layered(tasks=30 + 30 * (seed % 2), seed=seed)


def _measured(graph: Graph) -> TaskGraph:
    return measured_graph(graph, run_unpaced(graph, Node(workers=2), _LENGTHS))


def _traffic(app: App) -> None:
    settings = TrafficSettings(cars=2_000, roads=10, frames_per_second=10)
    cars = app.source("cars", Traffic(settings), event_time="ts")
    for name, stream in replicated(cars, 30, settings.roads):
        app.sink(name, stream, Discard())


_WORKLOADS: dict[str, Callable[[App], object]] = {
    "traffic": _traffic,
    "linear_road": lambda app: linear_road_queries(app, 3),
    "mix": lambda app: mix_queries(app, 6),
}


def compare(random_graphs: int) -> list[Partitioned]:
    """Cut, balance and time of every partitioner on every graph, for several numbers of groups."""
    partitioners = available()
    found: list[Partitioned] = []
    for name, graph in task_graphs(random_graphs):
        for groups in GROUPS:
            if groups > len(graph):
                continue
            for known_as, partitioner in partitioners.items():
                began_s = time.perf_counter()
                of = partitioner.partition(graph, groups)
                ms = (time.perf_counter() - began_s) * 1e3
                quality = Quality.of(graph, of, groups)
                found.append(Partitioned(name, len(graph), groups, known_as, quality, ms))
        progress(f"placement: {name}, {len(graph)} tasks, divided by {', '.join(partitioners)}")
    return found


def worse_than_round_robin(found: list[Partitioned]) -> dict[str, list[str]]:
    """By partitioner, the graphs on which its cut and its balance are both worse than round robin's."""
    baseline = {(one.graph, one.groups): one.quality for one in found if one.partitioner == BASELINE}
    worse: dict[str, list[str]] = {}
    for one in found:
        if one.partitioner != BASELINE:
            places = worse.setdefault(one.partitioner, [])
            if one.quality.is_worse(baseline[one.graph, one.groups]):
                places.append(f"{one.graph} in {one.groups}")
    return worse


def summary(found: list[Partitioned]) -> dict[str, Any]:
    """Medians by partitioner, and every single result."""
    by_name: dict[str, list[Partitioned]] = {}
    for one in found:
        by_name.setdefault(one.partitioner, []).append(one)
    worse = worse_than_round_robin(found)
    return {
        "partitioners": {
            name: {
                "cut_share_median": median([one.quality.cut_share for one in some]),
                "balance_median": median([one.quality.balance for one in some]),
                "balance_worst": max(one.quality.balance for one in some),
                "ms_median": median([one.ms for one in some]),
                "ms_worst": max(one.ms for one in some),
                "worse_than_round_robin_on_both": worse.get(name, []),
            }
            for name, some in by_name.items()
        },
        "partitions": [{**asdict(one), **asdict(one.quality), "quality": None} for one in found],
    }


def cut_ratios(found: list[Partitioned]) -> dict[str, float]:
    """How much less travels than with round robin, and how often a partitioner is worse on both counts."""
    medians: Mapping[str, Any] = summary(found)["partitioners"]
    worse = worse_than_round_robin(found)
    return {
        "cut_round_robin_over_metis": medians[BASELINE]["cut_share_median"]
        / max(medians["metis"]["cut_share_median"], 1e-9),
        "metis_worse_than_round_robin_on_both": float(len(worse["metis"])),
        **(
            {"network_worse_than_round_robin_on_both": float(len(worse["network"]))}
            if "network" in worse
            else {}
        ),
    }
