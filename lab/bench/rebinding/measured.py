"""Rebinding on this machine's two threads: 150 traffic queries on the real engine, bound in every way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from lab.bench.measuring.rates import Lengths, Paced, all_queries, interval, run_paced, run_unpaced
from lab.bench.measuring.report import progress
from lab.bench.rebinding.frames import FrameTraffic
from lab.bench.rebinding.simulated import mean_distribution
from penstock.app import App
from penstock.connectors.memory.discard import Discard
from penstock.engine.node import Node
from penstock.metrics.histogram import LatencySnapshot
from penstock.query.graph import Graph
from penstock.workloads.traffic.queries import replicated
from penstock.workloads.traffic.settings import TrafficSettings
from penstock.workloads.traffic.source import Traffic

WORKERS = 2
QUERIES = 150
ROADS = 50
DEADLINE_MS = 20.0
FRAME_MS = 40.0
#: Ways of binding: (policy, installation).
SYSTEMS: dict[str, tuple[str, str]] = {
    "static_interleaved": ("static_interleaved", "non_blocking"),
    "static_by_type": ("static_by_type", "non_blocking"),
    "static_shuffled": ("static_shuffled", "non_blocking"),
    "single_queue": ("static_interleaved", "shared_queue"),
    "greedy_blocking": ("greedy", "barrier"),
    "greedy": ("greedy", "non_blocking"),
    "greedy_by_type": ("greedy_by_type", "non_blocking"),
    "greedy_eager": ("greedy_eager", "non_blocking"),
    "greedy_literal": ("greedy_literal", "non_blocking"),
}
_FEWEST = 1_000  # agents: some for each road
_LANE_METRES = 300_000.0  # at least, or the blocks between fifty roads are too short
_SHARES = (0.5, 0.3, 0.15, 0.05)  # of what two threads can do
_IN_TIME = 0.8  # of the results


@dataclass(frozen=True)
class MeasuredRun:
    """One run of one system."""

    under_20ms: float
    under_40ms: float  # before the next frame
    mean_ms: float
    p50_ms: float
    p99_ms: float
    kept_up: bool
    busy_share: float
    rebinds: int
    stored_ms: float  # from a rebind's request until its owner is stored, on average
    waited_ms: float  # of all threads at barriers
    forwarded: int
    decision_ms: float  # of the policy, in all
    distribution: dict[str, float]


#: What is averaged over rounds.
_FIGURES = (
    "under_20ms",
    "under_40ms",
    "mean_ms",
    "p50_ms",
    "p99_ms",
    "busy_share",
    "rebinds",
    "stored_ms",
    "waited_ms",
    "forwarded",
    "decision_ms",
)


def node_of(system: str, rebind_every_s: float) -> Node:
    """Two threads under this way of binding."""
    binding, installation = SYSTEMS[system]
    return Node(
        workers=WORKERS,
        binding=binding,
        installation=installation,
        rebind_every_s=rebind_every_s,
        fusion=False,
    )


def queries_graph(agents: int, *, real_time: bool) -> Graph:
    """The 150 queries over so many agents."""
    settings = TrafficSettings(cars=agents, roads=ROADS, metres_per_car=max(50.0, _LANE_METRES / agents))
    app = App("rebinding")
    source = FrameTraffic(settings) if real_time else Traffic(settings)
    cars = app.source("cars", source, event_time="ts")
    for name, stream in replicated(cars, QUERIES, ROADS):
        app.sink(name, stream, Discard())
    return app.graph()


def operators_by_kind(graph: Graph) -> dict[str, int]:
    """How many operators of each kind a graph has."""
    return dict(Counter(node.kind for node in graph))


def agents_for(lengths: Lengths) -> int:
    """The most agents that greedy serves well enough for a difference to be seen.

    Tried are shares of what two threads process when nothing paces them. Little of that is left in real time:
    a frame is 350 turns, however few agents it has.
    """
    graph = queries_graph(20_000, real_time=False)
    metrics = run_unpaced(graph, node_of("static_by_type", 2.0), lengths)
    per_s = metrics.read / metrics.elapsed_s
    progress(f"rebinding: two threads process {per_s:,.0f} events/s if nothing paces them")
    for share in _SHARES:
        agents = scaled_agents(per_s, share)
        graph = queries_graph(agents, real_time=True)
        paced = run_paced(graph, node_of("greedy", 0.5), {"cars": agents * 25.0}, lengths)
        in_time = all_queries(paced.metrics).share_within(DEADLINE_MS)
        progress(f"rebinding: greedy with {agents:,} agents: {in_time:.3f} within {DEADLINE_MS:.0f} ms")
        if in_time >= _IN_TIME:
            break
    return agents


def scaled_agents(events_per_s: float, share: float, frames_per_second: int = 25) -> int:
    """Agents, in hundreds, whose reports are a share of a rate.

    >>> scaled_agents(1_000_000, 0.5)
    20000
    """
    return max(_FEWEST, round(events_per_s * share / frames_per_second / 100) * 100)


def measure_all(
    agents: int, lengths: Lengths, rounds: int, rebind_every_s: float
) -> dict[str, list[MeasuredRun]]:
    """Every system in turn, so many times over: what disturbs the machine for a while disturbs all."""
    found: dict[str, list[MeasuredRun]] = {system: [] for system in SYSTEMS}
    rates = {"cars": float(agents * 25)}
    for number in range(rounds):
        for system in SYSTEMS:
            graph = queries_graph(agents, real_time=True)
            paced = run_paced(graph, node_of(system, rebind_every_s), rates, lengths)
            found[system].append(measured_of(paced))
        progress(
            f"rebinding: measured, round {number + 1} of {rounds}, within {DEADLINE_MS:.0f} ms: "
            + ", ".join(f"{system} {runs[-1].under_20ms:.3f}" for system, runs in found.items())
        )
    return found


def measured_of(paced: Paced) -> MeasuredRun:
    """What is kept of a run."""
    metrics, latency = paced.metrics, all_queries(paced.metrics)
    rebinding = metrics.rebinding
    assert rebinding is not None
    return MeasuredRun(
        under_20ms=latency.share_within(DEADLINE_MS),
        under_40ms=latency.share_within(FRAME_MS),
        mean_ms=latency.mean_ms,
        p50_ms=paced.p50_ms,
        p99_ms=paced.p99_ms,
        kept_up=paced.kept,
        busy_share=metrics.busy_share,
        rebinds=rebinding.rebinds,
        stored_ms=rebinding.mean_stored_ns / 1e6,
        waited_ms=rebinding.waited_ns / 1e6,
        forwarded=rebinding.forwarded,
        decision_ms=metrics.decision_ns / 1e6,
        distribution=distribution_of(latency),
    )


def distribution_of(
    latency: LatencySnapshot, width_ms: float = 10.0, up_to_ms: float = 90.0
) -> dict[str, float]:
    """Shares of results by latency in steps of ``width_ms``; the last is open (rebinding fig. 3b)."""
    edges = [width_ms * step for step in range(int(up_to_ms / width_ms) + 1)]
    within = [0.0, *(latency.share_within(edge) for edge in edges[1:]), 1.0]
    labels = [f"{low:g}-{high:g}" for low, high in pairwise(edges)] + [f"{edges[-1]:g}+"]
    return {label: within[at + 1] - within[at] for at, label in enumerate(labels)}


def measured_summary(runs: Sequence[MeasuredRun]) -> dict[str, Any]:
    """Means over the rounds with their 95 % intervals as [mean, low, high]."""
    values = [asdict(run) for run in runs]
    figures: dict[str, Any] = {name: list(interval([value[name] for value in values])) for name in _FIGURES}
    figures["kept_up"] = sum(run.kept_up for run in runs)
    figures["distribution"] = mean_distribution([run.distribution for run in runs])
    return figures
