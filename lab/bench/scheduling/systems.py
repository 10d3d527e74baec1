"""What the scheduling benchmark compares: the workloads, the policies, and the four forms of the ablation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice

from lab.bench.measuring.prepared import add_query
from lab.bench.measuring.rates import Lengths, Paced, run_paced, run_unpaced
from penstock.app import App
from penstock.connectors.pacing import Rate
from penstock.engine.node import Node
from penstock.metrics.run import RunMetrics
from penstock.query.graph import Graph
from penstock.scheduling.catalogue import POLICIES
from penstock.scheduling.dispatch.rules import Rules

WORKERS = 2
LIMIT_MS = 100.0  # of the 99th percentile


@dataclass(frozen=True)
class Workload:
    """Queries of one benchmark, or of three in turn. Each has its own source."""

    name: str
    #: Which benchmark each query is of, over and over, and how a rate is divided among them.
    parts: tuple[tuple[str, float], ...]

    def graph(self, queries: int, rate: float | None) -> tuple[Graph, dict[str, float]]:
        """The graph of so many queries, and each source's share of ``rate``; None: as fast as they go."""
        rates: list[Rate | None] = [None] * queries if rate is None else list(self.rates(queries, rate))
        graph, sources = self.graph_at(rates)
        return graph, dict(zip(sources, self.rates(queries, rate), strict=True)) if rate else {}

    def graph_at(self, rates: Sequence[Rate | None]) -> tuple[Graph, list[str]]:
        """The graph of queries at these rates, and the names of their sources."""
        app = App(self.name)
        sources = [
            add_query(app, part, f"{part}-{number}", rate)
            for number, ((part, _), rate) in enumerate(zip(cycle(self.parts), rates, strict=False), 1)
        ]
        return app.graph(), sources

    def rates(self, queries: int, rate: float) -> list[float]:
        """A rate of all queries together, divided among them."""
        weights = [weight for _, weight in islice(cycle(self.parts), queries)]
        return [rate * weight / sum(weights) for weight in weights]


#: Events per second of a query in the paper, in millions (enjima 5.2.1): the mix keeps their proportions.
_PAPER = (("yahoo", 12.0), ("linear_road", 3.0), ("taxi", 8.0))
WORKLOADS = {part: Workload(part, ((part, weight),)) for part, weight in _PAPER}
WORKLOADS["mix"] = Workload("mix", _PAPER)

#: A thread for every operator, on blocks: the operating system schedules. It blocks and never spins.
THREADS = "threads"


def systems() -> dict[str, Node]:
    """Every policy, and threads, on blocks of the default size."""
    by_policy = {name: Node(workers=WORKERS, scheduling=name) for name in sorted(POLICIES)}
    return {**by_policy, THREADS: Node(workers=WORKERS, threads="per_operator")}


def unruled() -> dict[str, Node]:
    """The policies that serve everyone, without any rule of the dispatcher and without fusion."""
    return {
        name: Node(workers=WORKERS, scheduling=name, rules=Rules.none(), fusion=False)
        for name in ("state", "first_come", "round_robin")
    }


def ablation() -> dict[str, Node]:
    """Threads or state-based scheduling, on queues of fresh batches or on blocks (enjima 5.2.5); the paper's
    operators each run by themselves."""
    threads = Node(workers=WORKERS, threads="per_operator", fusion=False)
    state = Node(workers=WORKERS, scheduling="state", fusion=False)
    return {
        "TQ": replace(threads, memory="queues"),
        "SQ": replace(state, memory="queues"),
        "TM": threads,
        "full": state,
    }


#: Events of a hand-over → how many of them fit into a chunk, and into a turn. An edge holds four chunks.
_SMALL = {1: 1024, 384: 16}


def handing_over(node: Node, events: int) -> Node:
    """The same with another hand-over size; small ones are held in number, or edges would hold nothing."""
    if events not in _SMALL:
        return replace(node, block_events=events)
    blocks = _SMALL[events]
    return replace(node, block_events=events, chunk_blocks=blocks, turn_blocks=blocks)


def hand_over_sizes() -> tuple[int, ...]:
    return (*_SMALL, Node().block_events)


def paced(
    workload: Workload, node: Node, queries: int, rate: float, lengths: Lengths, *, drains: bool = True
) -> Paced:
    """One run at a rate of all queries together."""
    graph, rates = workload.graph(queries, rate)
    return run_paced(graph, node, rates, lengths, p99_ms=LIMIT_MS, drains=drains)


def unpaced(workload: Workload, node: Node, queries: int, lengths: Lengths) -> RunMetrics:
    """One run as fast as it goes. Fair only where all queries are alike: a mix would favour cheap events."""
    return run_unpaced(workload.graph(queries, None)[0], node, lengths)


def warm_up(lengths: Lengths) -> None:
    """Compiles what the benchmark runs, once."""
    for node in (*ablation().values(), Node(workers=WORKERS)):
        paced(WORKLOADS["mix"], node, 3, 300_000.0, lengths)
