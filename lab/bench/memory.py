"""A source ten times faster than its sink: memory stays within its cap, nothing is lost, the sink sets the
pace."""

from __future__ import annotations

import threading
import time

import psutil
import pyarrow as pa

from lab.bench.measuring.report import Options, Report, progress
from lab.workloads.yahoo.data import FIELDS, YahooSettings
from lab.workloads.yahoo.replay import YahooReplay
from penstock.app import App
from penstock.connectors.memory.callback import Callback
from penstock.connectors.memory.generator import Generator
from penstock.engine.node import Node
from penstock.engine.seat.summary import NodeSummary
from penstock.query.types import Schema

_SINK_RATE = 500_000.0  # events/s that the slow sink can take
_SOURCE_RATE = 10 * _SINK_RATE


class SlowSink:
    """Takes as long for every event as a system that can do ``rate`` of them a second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self.taken = 0
        self.busy_s = 0.0

    def __call__(self, batch: pa.RecordBatch) -> None:
        began_s = time.perf_counter()
        time.sleep(batch.num_rows / self._rate)
        self.taken += batch.num_rows
        self.busy_s += time.perf_counter() - began_s

    @property
    def capacity(self) -> float:
        """Events per second that it takes when it is never kept waiting."""
        return self.taken / self.busy_s


def run(options: Options) -> Report:
    """Runs for half a minute, stops the source, drains, and counts."""
    seconds = 120.0 if options.full else 30.0
    replay = YahooReplay(YahooSettings(events_per_second=240_000))
    node = Node(workers=2, block_events=16_384, chunk_blocks=2, max_chunks=16, prune_sources=False)
    _run(node, replay, 3.0)  # kernels and buffers of libraries are in memory before the measurement begins
    before = psutil.Process().memory_info().rss
    progress(
        f"memory: {_SOURCE_RATE / 1e6:.0f} M events/s into a sink of {_SINK_RATE / 1e6:.1f} M/s, "
        f"{seconds:.0f} s"
    )
    sink, summary, peak = _run(node, replay, seconds)
    metrics = summary.metrics
    return Report(
        name="memory",
        settings={
            "seconds": seconds,
            "source_events_per_s": _SOURCE_RATE,
            "sink_events_per_s": _SINK_RATE,
            "block_events": node.block_events,
            "chunk_blocks": node.chunk_blocks,
            "max_chunks": node.max_chunks,
        },
        figures={
            "events_per_s": sink.taken / metrics.elapsed_s,
            "sink_events_per_s": sink.capacity,
            "lost": metrics.read - sink.taken,
            "events": sink.taken,
            "rss_before_mb": before / 2**20,
            "rss_peak_mb": peak / 2**20,
            "rss_growth_mb": (peak - before) / 2**20,
            "cap_mb": metrics.memory_cap_bytes / 2**20,
            "allocated_mb": metrics.memory_bytes / 2**20,
            "backpressured_turns": sum(operator.backpressured for operator in metrics.operators),
        },
        ratios={
            "throughput_over_sink": sink.taken / metrics.elapsed_s / sink.capacity,
            "rss_growth_over_cap": (peak - before) / metrics.memory_cap_bytes,
        },
    )


def _run(node: Node, replay: YahooReplay, seconds: float) -> tuple[SlowSink, NodeSummary, int]:
    app = App("memory")
    source = Generator(replay.fill, Schema.of(dict(FIELDS)), rate=_SOURCE_RATE, ordered=True)
    events = app.source("events", source, event_time="ts")
    sink = SlowSink(_SINK_RATE)
    app.sink("slow", events.select(*events.schema.names), Callback(sink, arrow=True))
    execution = node.start(app.graph())
    process, peak = psutil.Process(), 0
    stopper = threading.Timer(seconds, execution.stop)
    stopper.start()
    while not execution.wait(0.05):
        peak = max(peak, process.memory_info().rss)
    return sink, execution.finish(), peak
