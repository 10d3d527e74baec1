"""Throughput and latency over block size and chunk size: enjima figure 10 on this machine."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from lab.bench.measuring.report import Options, Report, progress
from lab.bench.yahoo.node import WORKERS, run_engine
from lab.workloads.yahoo.data import YahooSettings
from lab.workloads.yahoo.replay import YahooReplay
from penstock.engine.node import Node

QUERIES = 6
_BLOCKS = (64, 384, 1024, 4096, 8192, 16384, 65536)
_CHUNKS = (1, 2, 4, 8, 16)
Point = dict[str, float]


def run(options: Options) -> Report:
    """Six Yahoo queries, as in the paper; latency at half of each setting's own throughput."""
    events, seconds = (100_000_000, 20.0) if options.full else (20_000_000, 3.0)
    replay = YahooReplay(YahooSettings(events_per_second=24_000_000))
    default = Node()
    by_block = {
        size: _measure(replay, events, seconds, block=size, chunk=default.chunk_blocks) for size in _BLOCKS
    }
    by_chunk = {
        size: _measure(replay, events, seconds, block=default.block_events, chunk=size) for size in _CHUNKS
    }
    best = max(point["events_per_s"] for point in by_block.values())
    plot = _draw(by_block, by_chunk, options.out / "blocks.png")
    return Report(
        name="blocks",
        settings={
            "queries": QUERIES,
            "workers": WORKERS,
            "events_per_query": events,
            "default_block": default.block_events,
        },
        figures={"by_block": by_block, "by_chunk": by_chunk},
        ratios={"default_over_best": by_block[default.block_events]["events_per_s"] / best},
        plots=(plot,),
    )


def _measure(replay: YahooReplay, events: int, seconds: float, *, block: int, chunk: int) -> Point:
    # Small blocks are slow: fewer events keep the sweep short. The turn stays one block's worth times four.
    events = min(events, 2_000 * block + 2_000_000)
    node = Node(workers=WORKERS, block_events=block, chunk_blocks=chunk, prune_sources=False)
    run_engine(replay, events // 10, node=node, queries=QUERIES)
    fast = run_engine(replay, events, node=node, queries=QUERIES)
    rate = fast.events_per_s / 2 / QUERIES
    paced = run_engine(replay, int(rate * seconds), rate=rate, node=node, queries=QUERIES)
    latencies = list(paced.metrics.latency.values())
    together = latencies[0]
    for latency in latencies[1:]:
        together = together + latency
    point = {
        "events_per_s": fast.events_per_s,
        "latency_mean_ms": together.mean_ms,
        "latency_p99_ms": together.quantile_ms(0.99),
    }
    progress(
        f"blocks: {block} events, {chunk} blocks a chunk: "
        f"{fast.events_per_s / 1e6:.0f} M/s, {together.mean_ms:.2f} ms"
    )
    return point


def _draw(by_block: dict[int, Point], by_chunk: dict[int, Point], path: Path) -> str:
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), sharex="col")
    for column, (points, label) in enumerate(
        ((by_chunk, "blocks per chunk"), (by_block, "events per block"))
    ):
        sizes = list(points)
        axes[0, column].plot(sizes, [points[size]["latency_mean_ms"] for size in sizes], "o-", label="mean")
        axes[0, column].plot(sizes, [points[size]["latency_p99_ms"] for size in sizes], "s--", label="p99")
        axes[1, column].plot(sizes, [points[size]["events_per_s"] / 1e6 for size in sizes], "o-")
        axes[1, column].set_xlabel(label)
        axes[1, column].set_xscale("log", base=2)
        axes[0, column].set_ylabel("latency at half load (ms)")
        axes[0, column].set_yscale("log")
        axes[0, column].legend()
        axes[1, column].set_ylabel("throughput (M events/s)")
    figure.suptitle("Sensitivity to chunk and block size: 6 Yahoo queries, 2 workers")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return str(path)
