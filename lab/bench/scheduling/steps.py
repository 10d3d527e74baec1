"""Sudden changes: of the input rate, and of how many events pass a filter (enjima figure 6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.bench.measuring.prepared import prepared
from lab.bench.measuring.rates import all_queries
from lab.bench.measuring.report import progress
from lab.bench.scheduling.systems import WORKLOADS, systems
from lab.workloads.yahoo.data import FIELDS
from penstock.app import App
from penstock.connectors.memory.discard import Discard
from penstock.connectors.memory.generator import Fill, Generator
from penstock.engine.node import Node
from penstock.query.graph import Graph
from penstock.query.types import Schema

QUERIES = 6
#: The rate of each step over that of the first, as in the paper; the last one is the rate that is given.
MULTIPLES = (1.0, 2.0, 6.0, 12.0)
_PHASES = 4  # of one selectivity and the other in turns


@dataclass(frozen=True)
class Sample:
    """What came between the last moment and this one."""

    at_s: float
    asked: float  # events per second
    achieved: float
    mean_ms: float
    p99_ms: float


#: Experiment → system → samples.
Steps = dict[str, dict[str, list[Sample]]]


def measure_steps(tops: dict[str, float], compared: list[str], step_s: float, every_s: float) -> Steps:
    """``tops``: for each workload the highest rate of its steps, of all queries together.

    The selectivity of the Yahoo filter changes at two thirds of that: while twice as many events pass, there
    is more to do.
    """
    nodes, steps = systems(), Steps()
    for workload, top in tops.items():
        for name in compared:
            progress(f"scheduling: steps of the input rate, {workload}, {name}")
            rates = [(step_s, top / QUERIES * multiple / MULTIPLES[-1]) for multiple in MULTIPLES]
            asked = partial(_asked, rates)
            graph, _ = WORKLOADS[workload].graph_at([rates] * QUERIES)
            found = _sampled(graph, nodes[name], step_s, every_s, asked)
            steps.setdefault(f"rate_{workload}", {})[name] = found
    rate = tops["yahoo"] * 2 / 3
    for name in compared:
        progress(f"scheduling: steps of the selectivity, yahoo, {name}")
        graph = _switching_queries(rate / QUERIES, step_s)
        found = _sampled(graph, nodes[name], step_s, every_s, lambda _: rate)
        steps.setdefault("selectivity_yahoo", {})[name] = found
    return steps


def step_figures(steps: Steps, step_s: float) -> dict[str, object]:
    """By experiment, system and step: the share of the rate that was achieved, and the worst latency."""
    return {
        experiment: {
            name: [
                {
                    "achieved_share": sum(s.achieved for s in part) / sum(s.asked for s in part),
                    "worst_mean_ms": max((s.mean_ms for s in part if not math.isnan(s.mean_ms)), default=0.0),
                }
                for part in _by_step(samples, step_s)
            ]
            for name, samples in by_system.items()
        }
        for experiment, by_system in steps.items()
    }


def switching(fill: Fill, period: int) -> Fill:
    """The same events, but in every other stretch of ``period`` twice as many are of the type that passes.

    Of the three types 0, 1 and 2 only 0 passes; in those stretches 1 becomes 0 and 2 becomes 1.
    """

    def switched(offset: int, n: int, columns: dict[str, NDArray[Any]], start: int) -> None:
        fill(offset, n, columns, start)
        types = columns["event_type"]
        stop = offset + n
        while offset < stop:
            until = min(stop, (offset // period + 1) * period)
            if offset // period % 2:
                part = types[start : start + until - offset]
                np.maximum(part - 1, 0, out=part)
            start, offset = start + until - offset, until

    return switched


def _switching_queries(rate: float, step_s: float) -> Graph:
    app = App("selectivity")
    fill, query = prepared("yahoo")
    for number in range(1, QUERIES + 1):
        switched = switching(fill, max(1, round(rate * step_s)))
        source = Generator(switched, Schema.of(dict(FIELDS)), rate=rate)
        stream = app.source(f"events-{number}", source, event_time="ts")
        app.sink(f"views-{number}", query(stream), Discard())
    return app.graph()


def _sampled(
    graph: Graph, node: Node, step_s: float, every_s: float, asked: Callable[[float], float]
) -> list[Sample]:
    execution = node.start(graph)
    before, samples = execution.metrics(), []
    for number in range(round(_PHASES * step_s / every_s)):
        execution.wait((number + 1) * every_s - execution.metrics().elapsed_s)
        now = execution.metrics()
        part, before = now.since(before), now
        latency = all_queries(part)
        at_s = now.elapsed_s
        achieved = part.read / part.elapsed_s
        middle_s = at_s - part.elapsed_s / 2
        samples.append(Sample(at_s, asked(middle_s), achieved, latency.mean_ms, latency.quantile_ms(0.99)))
    execution.abort()
    execution.finish()
    return samples


def _asked(rates: list[tuple[float, float]], at_s: float) -> float:
    """The rate of all queries at a moment."""
    step_s = rates[0][0]
    return QUERIES * rates[min(int(at_s / step_s), len(rates) - 1)][1]


def _by_step(samples: list[Sample], step_s: float) -> list[list[Sample]]:
    parts: dict[int, list[Sample]] = {}
    for sample in samples:
        parts.setdefault(min(int((sample.at_s - 1e-3) / step_s), _PHASES - 1), []).append(sample)
    return [parts[number] for number in sorted(parts)]
