"""A cluster of unequal nodes in the long run: the paper's 20 machines, with the decisions that really run.

It is a queueing model, not a simulation of single tuples. A task is a queue with exponential service, slowed
down by what else its node's two cores have to do (M/M/2); a tuple passes one task of every operator, chosen
by share, and a hop between nodes costs network time and processor time on both sides. Groups, deployment and
when to place anew are decided by ``penstock.placement``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lab.sim.cluster_apps import APPLICATIONS, Application
from penstock.placement.deployment import DEFAULT_THRESHOLD
from penstock.placement.first_fit import FirstFit
from penstock.placement.nodes import Host, node_imbalance
from penstock.placement.redeployment import Placement, RedeploymentOutcome, decide, utilisation
from penstock.placement.task_graph import TaskGraph

RATE_STEP = 500.0  # ms-stream 7.2: tuples per second
_COARSE = 5  # steps at a time, as long as it goes well
#: Groups that are tried when tasks are placed anew, fewest first: fewer groups send less between nodes.
GROUP_COUNTS = (6, 10, 14)


@dataclass(frozen=True)
class Cluster:
    """Machines of two cores; ``awake`` of them run other things already, the rest sleep."""

    machines: int = 20
    awake: int = 14
    cores: float = 2.0
    remote_us: float = 8.0  # of a core, on each side, for a tuple that leaves its node
    network_ms: float = 0.4
    local_ms: float = 0.02
    busiest: float = 0.75  # share of its cores that the busiest machine gives to other things
    seed: int = 3

    def nodes(self) -> list[Host]:
        random = np.random.default_rng(self.seed)
        loads = random.uniform(0.05, self.busiest, self.awake) * self.cores
        awake = [Host(f"machine-{number}", float(load), self.cores) for number, load in enumerate(loads)]
        return awake + [
            Host(f"machine-{number}", 0.0, self.cores, active=False)
            for number in range(self.awake, self.machines)
        ]


@dataclass(frozen=True)
class ClusterSystem:
    """Who groups tuples and who places tasks."""

    name: str
    grouping: str = "hash"
    placing: str = "round_robin"  # or "first_fit", "ms_stream"


SYSTEMS = {
    "storm": ClusterSystem("Storm"),
    "r_storm": ClusterSystem("R-Storm", placing="first_fit"),
    "pkg": ClusterSystem("PKG", grouping="partial_key"),
    "pstream": ClusterSystem("PStream", grouping="popularity"),
    "ms_stream": ClusterSystem("Ms-Stream", grouping="two_tier", placing="ms_stream"),
    "ms_stream_nodes": ClusterSystem("Ms-Stream (placement alone)", placing="ms_stream"),
}


@dataclass(frozen=True)
class Result:
    """One system at one rate."""

    latency_ms: float  # infinite if a task or a node is overloaded
    lin: float  # of the activated nodes
    remote_share: float  # of all tuples that are sent
    busiest: float  # node, as a share of its cores
    outcome: str  # of the last look at the nodes
    placement: Placement
    moved: int = 0


def place(
    system: ClusterSystem, graph: TaskGraph, nodes: Sequence[Host], current: Placement | None = None
) -> tuple[Placement, str, int]:
    """Task → node, by the system's rule; what came of looking again, and how many tasks that moved.

    ``current`` is where tasks are by now; at first, where Storm puts them.
    """
    awake = [number for number, node in enumerate(nodes) if node.active]
    spread = tuple(awake[task % len(awake)] for task in range(len(graph)))
    if system.placing == "round_robin":
        return spread, "placed", 0
    if system.placing == "first_fit":
        nearest = sorted(
            awake, key=lambda number: (nodes[number].load, number)
        )  # most room: the reference node
        room = tuple(DEFAULT_THRESHOLD * nodes[n].capacity - nodes[n].load for n in nearest)
        of = FirstFit(room=room).partition(graph, len(nearest))
        return tuple(nearest[group] for group in of), "placed", 0
    here = current or spread
    for groups in GROUP_COUNTS:
        decision = decide(graph, nodes, here, groups)
        if decision.outcome in (RedeploymentOutcome.BALANCED, RedeploymentOutcome.MOVE):
            break
    moved = len(decision.moved) if decision.outcome is RedeploymentOutcome.MOVE else 0
    return decision.placement, decision.outcome.value, moved


def with_remote_work(graph: TaskGraph, placement: Placement, remote_us: float) -> TaskGraph:
    """The loads with what sending to other nodes costs on both sides."""
    loads = list(graph.loads)
    for edge in graph.edges:
        if placement[edge.sender] != placement[edge.receiver]:
            loads[edge.sender] += edge.rate * remote_us / 1e6
            loads[edge.receiver] += edge.rate * remote_us / 1e6
    return replace(graph, loads=tuple(loads))


def evaluate(
    cluster: Cluster,
    system: ClusterSystem,
    application: Application,
    rate: float,
    applications: int = 1,
    current: Placement | None = None,
) -> Result:
    """The long run at a rate of each of ``applications`` that run at once."""
    nodes = cluster.nodes()
    graph = _several(application.task_graph(rate), applications)
    placement, told, moved = place(system, graph, nodes, current)
    loaded = with_remote_work(graph, placement, cluster.remote_us)
    used = utilisation(loaded, nodes, placement)
    latency_ms = _latency_ms(cluster, application, rate, loaded, placement, used)
    sent = sum(edge.rate for edge in graph.edges)
    remote = sum(edge.rate for edge in graph.edges if placement[edge.sender] != placement[edge.receiver])
    lin = node_imbalance(used.values())
    return Result(latency_ms, lin, remote / sent if sent else 0.0, max(used.values()), told, placement, moved)


def bottleneck(cluster: Cluster, system: ClusterSystem, application: Application) -> float:
    """The highest rate at which no queue grows for ever, on the way up in steps of 500 tuples a second.

    The system goes along: what it placed at one rate is where the next finds its tasks.
    """
    rate, step = 0.0, _COARSE * RATE_STEP
    current: Placement | None = None
    while True:
        found = evaluate(cluster, system, application, rate + step, 1, current)
        if math.isfinite(found.latency_ms):
            rate, current = rate + step, found.placement
        elif step > RATE_STEP:
            step = RATE_STEP
        else:
            return rate


def application_for(system: ClusterSystem, name: str, zipf: float, seed: int = 0) -> Application:
    """The application with the shares, and the merging, that the system's grouping means; ``seed`` is that of
    the hash function."""
    return APPLICATIONS[name](zipf, system.grouping, seed)


def _several(graph: TaskGraph, count: int) -> TaskGraph:
    edges = tuple(
        replace(edge, sender=edge.sender + copy * len(graph), receiver=edge.receiver + copy * len(graph))
        for copy in range(count)
        for edge in graph.edges
    )
    return TaskGraph(graph.loads * count, edges)


def _latency_ms(
    cluster: Cluster,
    application: Application,
    rate: float,
    loaded: TaskGraph,
    placement: Placement,
    used: dict[int, float],
) -> float:
    """The mean time of a tuple of the first application: at one task of each operator, and between them."""
    total_ms, first = 0.0, 0
    for number, (stage, shares) in enumerate(zip(application.stages, application.shares, strict=True)):
        for task in range(stage.tasks):
            share, busy = shares[task], loaded.loads[first + task]
            node = placement[first + task]
            if share == 0.0:
                continue
            if used[node] >= 1.0 or busy >= 1.0:  # the node's cores, or the one thread of the task
                return math.inf
            slowed = 1.0 / (1.0 - used[node] ** 2)  # M/M/2: how much longer a core's work takes there
            service_ms = busy / (rate * stage.per_tuple * share) * 1e3
            total_ms += share * service_ms * slowed / (1.0 - busy)  # M/M/1
        if number + 1 < len(application.stages):
            following = first + stage.tasks
            for a, one in enumerate(shares):
                for b, other in enumerate(application.shares[number + 1]):
                    apart = placement[first + a] != placement[following + b]
                    total_ms += one * other * (cluster.network_ms if apart else cluster.local_ms)
        first += stage.tasks
    return total_ms
