"""The Yahoo benchmark: how near the engine comes to one hand-fused loop over the same columns."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from lab.bench.measuring.report import Options, Report, median, progress
from lab.workloads.yahoo.data import FIELDS, YahooSettings
from lab.workloads.yahoo.fused import WINDOW_US, campaign_slots, fused_count, ingest_and_count
from lab.workloads.yahoo.query import views_per_campaign
from lab.workloads.yahoo.replay import YahooReplay
from penstock.app import App
from penstock.compiled.timing import KernelTimer
from penstock.connectors.memory.generator import Generator
from penstock.connectors.memory.sink import Memory
from penstock.engine.node import Node
from penstock.engine.seat.summary import NodeSummary
from penstock.metrics.operators import cost_of_measuring_ns
from penstock.query.errors import PenstockError
from penstock.query.types import Schema

WORKERS = 2
PARTITIONS = 2  # the stream comes in two partitions, as the limit's two threads each take a half
_EVENTS_PER_SECOND = 24_000_000  # of event time: how many events share a window, not how fast they come
_FUSED_BLOCK = 8192  # the fastest of 1,024 to 65,536 here


def run(options: Options) -> Report:
    """All in turn, several times; a ratio is the median of the rounds' ratios.

    The limit copies every attribute in, as the engine's source does, and then runs one fused loop, on both
    cores. Beside it stands the same loop on columns in place: it reads three of the seven attributes and
    takes none in.
    """
    if options.on == "spark":
        from lab.bench.yahoo import on_spark as yahoo_spark

        return yahoo_spark.run(options)
    if options.on != "node":
        raise PenstockError(f"yahoo runs on: node, spark; got '{options.on}'")
    rounds, events = (9, 1_000_000_000) if options.full else (5, 300_000_000)
    replay = YahooReplay(YahooSettings(events_per_second=_EVENTS_PER_SECOND))
    progress("yahoo: compiling and warming up")
    run_engine(replay, 20_000_000)
    run_fused(replay, 20_000_000, ingest=True)
    run_fused(replay, 20_000_000, ingest=False)
    speeds, limits, bare = [], [], []
    for number in range(rounds):
        limits.append(run_fused(replay, events, ingest=True))
        speeds.append(run_engine(replay, events).events_per_s)
        bare.append(run_fused(replay, 3 * events, ingest=False))
        progress(
            f"yahoo: round {number + 1} of {rounds}: engine {speeds[-1] / 1e6:.0f} M/s, "
            f"fused loop {limits[-1] / 1e6:.0f} M/s, on columns in place {bare[-1] / 1e6:.0f} M/s"
        )
    half = median(speeds) / 2
    progress(f"yahoo: latency at half load, {half / 1e6:.0f} M events/s")
    seconds = 30.0 if options.full else 8.0
    paced = run_engine(replay, int(half * seconds), rate=half)
    latency = paced.metrics.latency["views"]
    progress("yahoo: share of time outside kernels")
    outside = share_outside_kernels(replay, events // 2)
    return Report(
        name="yahoo",
        settings={"on": "node", "workers": WORKERS, "events": events, "rounds": rounds, **_sizes(Node())},
        figures={
            "events_per_s": median(speeds),
            "fused_events_per_s": median(limits),
            "fused_in_place_events_per_s": median(bare),
            "p50_ms_half_load": latency.quantile_ms(0.5),
            "p99_ms_half_load": latency.quantile_ms(0.99),
            "latency_markers": latency.count,
            "half_load_events_per_s": half,
            "share_outside_kernels": outside,
            "measuring_share": _measuring_ns(paced) / (paced.metrics.elapsed_s * 1e9 * WORKERS),
            "decision_share": paced.metrics.decision_share,
            "planning_share": paced.metrics.planning_share,
        },
        ratios={
            "of_fused_limit": median([speed / limit for speed, limit in zip(speeds, limits, strict=True)]),
            "of_fused_in_place": median([speed / limit for speed, limit in zip(speeds, bare, strict=True)]),
        },
    )


def run_engine(
    replay: YahooReplay, events: int, *, rate: float | None = None, node: Node | None = None, queries: int = 1
) -> NodeSummary:
    """One run on the node engine. Every attribute is copied in; the counts are checked against the input."""
    app = App("yahoo")
    sinks = []
    for number in range(queries):
        name = "" if number == 0 else f"_{number + 1}"
        schema = Schema.of(dict(FIELDS))
        source = Generator(replay.fill, schema, limit=events, rate=rate, partitions=PARTITIONS)
        stream = app.source(f"events{name}", source, event_time="ts")
        sink = Memory()
        sinks.append(sink)
        app.sink(f"views{name}", views_per_campaign(stream, replay.events), sink)
    summary = app.run(on=node or Node(workers=WORKERS, prune_sources=False))
    assert isinstance(summary, NodeSummary)
    for sink in sinks:
        views = sum(row["views"] for row in sink.rows())
        if summary.complete and views != (events + 2) // 3:
            raise PenstockError(f"yahoo lost events: counted {views:,} of {(events + 2) // 3:,}")
    return summary


def run_fused(replay: YahooReplay, events: int, *, ingest: bool) -> float:
    """Events per second of the hand-fused loop, on as many threads as the engine has workers."""
    slots, campaigns = campaign_slots(*replay.events.campaign_table())
    columns = tuple(replay.columns[name] for name, _ in FIELDS)
    windows = int(columns[0].max()) // WINDOW_US + 1
    passes = max(1, events // WORKERS // replay.size)

    def work() -> None:
        counts = np.zeros((windows, len(campaigns)), np.int64)
        block = tuple(np.zeros(_FUSED_BLOCK, np.int64) for _ in columns)
        for _ in range(passes):
            if ingest:
                ingest_and_count(columns, block, slots, counts)
            else:
                fused_count(columns[0], columns[3], columns[5], slots, counts)

    threads = [threading.Thread(target=work) for _ in range(WORKERS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return passes * replay.size * WORKERS / (time.perf_counter() - began)


def share_outside_kernels(replay: YahooReplay, events: int) -> float:
    """The share of the workers' time that no kernel ran: decisions, bookkeeping, waiting."""
    with KernelTimer() as timer:
        timed = _TimedReplay(replay, timer)
        summary = run_engine(timed, events)  # type: ignore[arg-type]
    return 1.0 - timer.total_ns / (summary.metrics.elapsed_s * 1e9 * WORKERS)


class _TimedReplay:
    """A replay whose copying is timed as the kernel that it is."""

    def __init__(self, replay: YahooReplay, timer: KernelTimer) -> None:
        self.events = replay.events
        self.fill = timer.timed(replay.fill)


def _measuring_ns(summary: NodeSummary) -> float:
    """What counting and timing the turns of a run has cost."""
    return cost_of_measuring_ns() * sum(operator.turns for operator in summary.metrics.operators)


def _sizes(node: Node) -> dict[str, Any]:
    return {
        "block_events": node.block_events,
        "chunk_blocks": node.chunk_blocks,
        "max_chunks": node.max_chunks,
    }
