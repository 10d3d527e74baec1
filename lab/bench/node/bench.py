"""The node benchmark: how near three queries come to hand-fused loops that copy the same attributes in."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.bench.measuring.prepared import add_query, prepared_columns
from lab.bench.measuring.rates import Lengths, Paced, run_paced, run_unpaced
from lab.bench.measuring.report import Options, Report, median, progress
from lab.bench.scheduling.rates import spread
from lab.workloads.linear_road.fused import FusedLinearRoad
from lab.workloads.taxi.fused import FusedTaxi
from lab.workloads.yahoo.data import FIELDS, YahooEvents, YahooSettings
from lab.workloads.yahoo.fused import WINDOW_US, campaign_slots, ingest_and_count
from penstock.app import App
from penstock.engine.node import Node
from penstock.query.graph import Graph

WORKERS = 2
PARTITIONS = 2  # as the limit has a thread for each half
_FUSED_BLOCK = 8192
_LIMIT_S = 0.5  # of the hand-fused loop, a round

#: Runs a hand-fused loop over all prepared events once; how many it counted.
Loop = Callable[[], int]


class FusedYahoo:
    """The Yahoo query's loop, for one thread."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], block_events: int) -> None:
        self._columns = tuple(columns[name] for name, _ in FIELDS)
        self._block = tuple(np.zeros(block_events, np.int64) for _ in FIELDS)
        self._slots, campaigns = campaign_slots(*YahooEvents(YahooSettings()).campaign_table())
        self._first = int(self._columns[0].min()) // WINDOW_US
        windows = int(self._columns[0].max()) // WINDOW_US - self._first + 1
        self._counts = np.zeros((windows, len(campaigns)), np.int64)

    def run(self) -> int:
        """Takes all prepared events in once; how many were counted."""
        return ingest_and_count(self._columns, self._block, self._slots, self._counts, self._first)


_LIMITS: dict[str, Callable[[Mapping[str, NDArray[Any]], int], Any]] = {
    "yahoo": FusedYahoo,
    "linear_road": FusedLinearRoad,
    "taxi": FusedTaxi,
}


def run(options: Options) -> Report:
    """The limit and the engine in turn, several rounds, then a run at half of what the engine did."""
    rounds = 9 if options.full else 5
    lengths = Lengths(2.0, 8.0) if options.full else Lengths(0.4, 1.2)
    node = Node(workers=WORKERS, prune_sources=False)
    figures: dict[str, Any] = {}
    ratios: dict[str, float] = {}
    for name in _LIMITS:
        progress(f"node: {name}: compiling and warming up")
        loops = [_LIMITS[name](prepared_columns(name), _FUSED_BLOCK).run for _ in range(WORKERS)]
        limit_of(name, loops, 0.0)
        run_unpaced(graph_of(name, None), node, Lengths(0.1, 0.1))
        limits, speeds, halves = [], [], []
        for number in range(rounds):
            limits.append(limit_of(name, loops, _LIMIT_S))
            metrics = run_unpaced(graph_of(name, None), node, lengths)
            speeds.append(metrics.read / metrics.elapsed_s)
            halves.append(paced(name, node, median(speeds) / 2, lengths))
            progress(
                f"node: {name}: round {number + 1} of {rounds}: engine {speeds[-1] / 1e6:.1f} M/s, "
                f"fused loop {limits[-1] / 1e6:.1f} M/s, p99 at half load {halves[-1].p99_ms:.1f} ms"
            )
        figures[name] = {
            "events_per_s": spread(speeds),
            "fused_events_per_s": spread(limits),
            "p50_ms_half_load": spread([half.p50_ms for half in halves]),
            "p99_ms_half_load": spread([half.p99_ms for half in halves]),
            "decision_share": median([half.metrics.decision_share for half in halves]),
            "planning_share": median([half.metrics.planning_share for half in halves]),
        }
        ratios[f"{name}_of_fused_limit"] = median(
            [speed / limit for speed, limit in zip(speeds, limits, strict=True)]
        )
    return Report(
        name="node",
        settings={
            "workers": WORKERS,
            "partitions": PARTITIONS,
            "rounds": rounds,
            "seconds": lengths.measured_s,
        },
        figures=figures,
        ratios={"least_of_fused_limit": min(ratios.values()), **ratios},
    )


def graph_of(workload: str, rate: float | None) -> Graph:
    """One query over prepared events, at a rate or as fast as they are read."""
    app = App(workload)
    add_query(app, workload, workload, rate, PARTITIONS)
    return app.graph()


def paced(workload: str, node: Node, rate: float, lengths: Lengths) -> Paced:
    """One run at a rate."""
    return run_paced(graph_of(workload, rate), node, {f"{workload}-events": rate}, lengths)


def limit_of(workload: str, loops: list[Loop], seconds: float) -> float:
    """Events per second of the hand-fused loop, on as many threads as there are loops, over and over for at
    least so long."""
    size = len(next(iter(prepared_columns(workload).values())))
    passes = [0] * len(loops)
    began = time.perf_counter()

    def work(number: int) -> None:
        while True:
            loops[number]()
            passes[number] += 1
            if time.perf_counter() - began >= seconds:
                return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(loops))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(passes) * size / (time.perf_counter() - began)
