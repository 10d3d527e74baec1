"""Runs of the RIoTBench topologies under two systems: congestion-aware scheduling and a thread per operator.

Both run the same graph with the same instances, kernels and blocks. Only who decides differs: our scheduler
for a pool of two workers, or the operating system for as many threads as there are operators.
"""

from __future__ import annotations

import functools
import math
import resource
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from lab.bench.measuring.rates import Lengths, Paced, all_queries, run_paced
from lab.bench.measuring.report import median
from lab.bench.riot.operators import operator_figures, utilisation_variation
from lab.workloads import riot
from lab.workloads.riot.data import FIELDS, Messages
from penstock.app import App
from penstock.connectors.memory.callback import Callback
from penstock.connectors.memory.generator import Generator
from penstock.engine.node import Node
from penstock.metrics.run import RunMetrics
from penstock.query.graph import Graph

WORKERS = 2
BLOCK = 4_096  # events: some seconds of messages at these rates, and little memory
#: Few sensors, so that all of them have been heard often enough for every analysis early in a run.
SETTINGS = riot.RiotSettings(sensors=50)

SYSTEMS = {
    "congestion": Node(workers=WORKERS, scheduling="congestion", block_events=BLOCK, fusion=False),
    "threads": Node(workers=WORKERS, threads="per_operator", block_events=BLOCK, fusion=False),
}


@dataclass(frozen=True)
class RiotExtent:
    """How long and how often: the paper measures one minute, five times."""

    curve: Lengths
    curve_rounds: int
    search: Lengths
    search_rounds: int
    growth: float  # between two rates of a search
    steps: int  # of bisection between them
    confirmation: Lengths  # of the run that a rate must be sustained in again to count


@dataclass(frozen=True)
class RatePoint:
    """One rate on a curve. Latency counts from when a message was due to when its results were published."""

    rate: float  # messages a second that were due
    read_per_s: float
    published_per_s: float  # rows: a message gives several, or none
    mean_ms: float
    p50_ms: float
    p99_ms: float
    utilisation_variation: float
    messages_per_turn: float  # of the first operator: how much is done at once
    turns_per_message: float  # of all operators together
    switches_per_message: float  # from thread to thread: how often work is handed over


class RiotTopology:
    """One of the four topologies, to be run at any rate by any node."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder

    def run(self, node: Node, rate: float, lengths: Lengths) -> Paced:
        """A run at a rate, for a while."""
        return run_paced(self._graph(rate=rate), node, {self.name: rate}, lengths)

    def run_counted(self, node: Node, rate: float, lengths: Lengths) -> tuple[Paced, RatePoint]:
        """A run, and what it comes to on a curve."""
        before = _switches()
        paced = self.run(node, rate, lengths)
        switches = _switches() - before
        messages = paced.achieved * (lengths.warm_up_s + lengths.measured_s)
        return paced, point_of(paced, switches / messages if messages else math.nan)

    def run_all(self, node: Node, messages: int) -> RunMetrics:
        """A run of so many messages that are all there at once."""
        return node.run(self._graph(limit=messages)).metrics

    def _graph(self, *, limit: int | None = None, rate: float | None = None) -> Graph:
        app = App(self.name)
        if self.name == "train":
            source = riot.input_of("train", SETTINGS, limit, rate)
        else:
            messages = _messages(SETTINGS)
            vocabulary = {"line": messages.trace}
            source = Generator(messages.fill, dict(FIELDS), limit=limit, rate=rate, vocabulary=vocabulary)
        riot.topology(app, self.name, source, _publisher, settings=SETTINGS, folder=self._folder)
        return app.graph()


def in_turn(systems: tuple[str, ...], number: int) -> tuple[str, ...]:
    """Who runs in a round, and in which order: nobody is always the first."""
    first = number % len(systems)
    return systems[first:] + systems[:first]


def point_of(paced: Paced, switches_per_message: float = math.nan) -> RatePoint:
    """What a run comes to on the curves."""
    metrics = paced.metrics
    latency = all_queries(metrics)
    operators = operator_figures(metrics)
    first = next(iter(operators.values()))  # a parser, or a reader of training rows
    turns = sum(operator.turns for operator in metrics.operators)
    return RatePoint(
        rate=paced.rate,
        read_per_s=paced.achieved,
        published_per_s=published(metrics) / metrics.elapsed_s,
        mean_ms=latency.mean_ms,
        p50_ms=paced.p50_ms,
        p99_ms=paced.p99_ms,
        utilisation_variation=utilisation_variation(operators),
        messages_per_turn=first.events_per_turn,
        turns_per_message=turns / metrics.read if metrics.read else math.nan,
        switches_per_message=switches_per_message,
    )


def published(metrics: RunMetrics) -> int:
    """Rows that reached the publishers, where the paper counts."""
    return sum(operator.processed for operator in metrics.operators if _is_publisher(operator.id))


def median_point(points: Sequence[RatePoint]) -> RatePoint:
    """The same rate in several rounds: of each figure the median."""
    return RatePoint(
        **{field.name: median([getattr(p, field.name) for p in points]) for field in fields(RatePoint)}
    )


def plain(points: Sequence[RatePoint]) -> list[dict[str, Any]]:
    """Points for the report."""
    return [asdict(point) for point in points]


def _switches() -> int:
    """How often threads of this process have given up their core, or lost it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw


@functools.cache
def _messages(settings: riot.RiotSettings) -> Messages:
    """One trace for all runs: making 20,000 lines takes half as long as a short run."""
    return Messages(settings)


def _publisher(instance: int) -> Callback:
    """What an MQTT publisher does before it sends: every row becomes a message of JSON."""
    return Callback(_encoded, arrow=True)


def _encoded(rows: pa.RecordBatch) -> None:
    for row in rows.to_pylist():
        orjson.dumps(row)


def _is_publisher(operator: str) -> bool:
    return operator == "publish" or (operator.startswith("publish.") and not operator.endswith(".share"))
