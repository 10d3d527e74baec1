"""What the traffic queries' operators cost on this machine, for the simulation of 24 threads.

The paper's queries take every tuple of a frame and give a result per frame. The same is asked of the engine
here: a filter that keeps everything, a mean and a top-k over windows of one frame, on one worker. What a C++
engine's queues cost is not measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.sim.traffic_load import TrafficLoad
from penstock.app import App
from penstock.connectors.memory.discard import Discard
from penstock.connectors.memory.generator import Generator
from penstock.engine.node import Node
from penstock.metrics.run import RunMetrics
from penstock.query.aggregates import avg
from penstock.query.expr import col
from penstock.query.graph import Graph
from penstock.query.windows import tumbling

FRAME_US = 40_000
_FASTEST_MS = 30.0
_FRAMES = 3  # of a run


@dataclass(frozen=True)
class FrameCosts:
    """Per tuple of a frame: of the operator that collects, of the mean, and of the top-k per doubling."""

    gather_ns: float
    scan_ns: float
    sort_ns: float

    def load(self, load: TrafficLoad) -> TrafficLoad:
        """The same load with these costs."""
        return replace(load, **asdict(self))


def measure_costs(sizes: Sequence[int] = (60_000, 120_000, 220_000), repetitions: int = 15) -> FrameCosts:
    """Runs frames of several sizes through the real operators.

    Of each size the fastest run counts, since whatever disturbs a run makes it slower; many short ones, so
    that some are not disturbed. Of the sizes the mean.
    """
    node = Node(workers=1, fusion=False)
    frame_graph_costs(node.run(frames_graph(sizes[0], 2)).metrics, sizes[0])  # compiles
    found = []
    for agents in sizes:
        runs = [node.run(frames_graph(agents, _FRAMES)).metrics for _ in range(repetitions)]
        found.append(fastest([frame_graph_costs(run, agents) for run in runs]))
    return FrameCosts(*(float(np.mean(column)) for column in zip(*map(_values, found), strict=True)))


def frames_graph(agents: int, frames: int) -> Graph:
    """So many frames of so many agents, as fast as they are read."""
    speeds = np.random.default_rng(0).uniform(0.0, _FASTEST_MS, agents)

    def fill(offset: int, n: int, columns: dict[str, NDArray[Any]], start: int) -> None:
        rows = np.arange(offset, offset + n)
        columns["ts"][start : start + n] = rows // agents * FRAME_US
        columns["speed"][start : start + n] = speeds[rows % agents]

    app = App("frames")
    source = Generator(fill, {"ts": "timestamp", "speed": "float64"}, limit=agents * frames)
    cars = app.source("cars", source, event_time="ts").filter(col("speed") >= 0.0)
    window = tumbling(f"{FRAME_US // 1_000}ms")
    app.sink("speed", cars.window(window).agg(speed=avg("speed")), Discard())
    app.sink("top", cars.window(window).top(5, by="speed"), Discard())
    return app.graph()


def frame_graph_costs(metrics: RunMetrics, agents: int) -> FrameCosts:
    """From what a run of ``frames_graph`` showed."""
    per_event = {
        operator.kind: operator.busy_ns / operator.processed
        for operator in metrics.operators
        if operator.kind in ("filter", "agg", "top")
    }
    return FrameCosts(per_event["filter"], per_event["agg"], per_event["top"] / math.log2(agents))


def fastest(runs: Sequence[FrameCosts]) -> FrameCosts:
    """The least of each cost.

    >>> fastest([FrameCosts(1.0, 5.0, 2.0), FrameCosts(2.0, 4.0, 3.0)])
    FrameCosts(gather_ns=1.0, scan_ns=4.0, sort_ns=2.0)
    """
    return FrameCosts(*(min(column) for column in zip(*map(_values, runs), strict=True)))


def _values(costs: FrameCosts) -> tuple[float, float, float]:
    return costs.gather_ns, costs.scan_ns, costs.sort_ns
