"""Skew on two workers of this machine: a heavy function per key on the node engine and on Spark."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from lab.bench.measuring.report import median, progress
from lab.sim.routing import best_share
from lab.workloads.shop.data import ShopSettings, popularity
from lab.workloads.shop.query import ledger
from lab.workloads.shop.source import EVENT_TIME, shop_source
from penstock.app import App
from penstock.connectors.memory.discard import Discard
from penstock.engine.node import Node
from penstock.query.graph import Graph
from penstock.routing.imbalance import load_imbalance

WORKERS = 2
ITEMS = 100_000
BLOCK_EVENTS = 512  # a heavy event takes as long as thousands of others: short queues follow the route sooner
LOOK_EVERY_S = 0.2
PARTITIONS = 64


@dataclass(frozen=True)
class MeasuredPlan:
    """How much is measured; ``placements`` are numberings of the items, each of which hashes differently."""

    node_events: int = 30_000
    node_zipf: tuple[float, ...] = (0.0, 1.0, 1.5)
    node_placements: int = 3
    repeats: int = 2  # of each run, of which the fastest counts: other processes only ever slow one down
    spark_batches: int = 12
    spark_batch_events: int = 6_000
    spark_zipf: tuple[float, ...] = (1.0, 1.5)
    spark_placements: int = 1


def ledger_graph(zipf: float, placement: int, events: int, rounds: int, partitions: int) -> Graph:
    """The heavy query over so many events."""
    app = App("skew")
    shop = ShopSettings(items=ITEMS, zipf=zipf, first_item=1 + placement * 1_000_000)
    stream = app.source("events", shop_source(shop, events, partitions=partitions), event_time=EVENT_TIME)
    app.sink("out", ledger(stream, rounds), Discard())
    return app.graph()


def measure_node(plan: MeasuredPlan, rounds: int, chi: float) -> dict[str, dict[str, Any]]:
    """By Zipf coefficient: hash against two tiers, medians over placements."""
    _node_run(0.0, 0, 2_000, rounds, chi)  # compiles
    results: dict[str, dict[str, Any]] = {}
    for zipf in plan.node_zipf:
        found: dict[str, list[float]] = {}
        for placement in range(plan.node_placements):
            both: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
            for _ in range(plan.repeats):
                for runs, wanted in zip(both, (None, chi), strict=True):
                    runs.append(_node_run(zipf, placement, plan.node_events, rounds, wanted))
            _note(found, *(max(runs, key=lambda run: run["events_per_s"]) for runs in both))
        results[str(zipf)] = _summed(found, zipf)
        progress(f"skew: node, Zipf {zipf}: {results[str(zipf)]['throughput_vs_hash']:.2f} times hashing")
    return results


def _node_run(zipf: float, placement: int, events: int, rounds: int, chi: float | None) -> dict[str, float]:
    node = Node(
        workers=WORKERS,
        tasks=WORKERS,
        virtual_partitions=PARTITIONS,
        block_events=BLOCK_EVENTS,
        rebalance=chi,
        rebalance_every_s=LOOK_EVERY_S,
    )
    metrics = node.run(ledger_graph(zipf, placement, events, rounds, 1)).metrics
    told = metrics.routing["ledger"]
    return {
        "events_per_s": events / metrics.elapsed_s,
        "lit": load_imbalance(told.rows) if chi is None else told.lit,
        "migrations": float(told.observed),
    }


def measure_spark(plan: MeasuredPlan, rounds: int, chi: float) -> dict[str, dict[str, Any]]:
    """By Zipf coefficient: hash against two tiers, from the second half of the batches."""
    results: dict[str, dict[str, Any]] = {}
    for zipf in plan.spark_zipf:
        found: dict[str, list[float]] = {}
        for placement in range(plan.spark_placements):
            plain = _spark_run(plan, zipf, placement, rounds, None)
            ours = _spark_run(plan, zipf, placement, rounds, chi)
            _note(found, plain, ours)
        results[str(zipf)] = _summed(found, zipf)
        progress(f"skew: Spark, Zipf {zipf}: {results[str(zipf)]['throughput_vs_hash']:.2f} times hashing")
    return results


def _spark_run(
    plan: MeasuredPlan, zipf: float, placement: int, rounds: int, chi: float | None
) -> dict[str, float]:
    from penstock.spark.runtime import Spark

    runtime = Spark(
        f"local[{WORKERS}]",
        tasks=WORKERS,
        virtual_partitions=PARTITIONS,
        rebalance=chi,
        batch_events=plan.spark_batch_events,
    )
    events = plan.spark_batches * plan.spark_batch_events
    began_s = time.perf_counter()
    run = runtime.start(ledger_graph(zipf, placement, events, rounds, 1), "skew")
    run.wait()
    run.finish()
    batches = sorted(run.batches, key=lambda batch: batch.batch_id)
    worked = [batch for batch in batches if batch.rows_in]
    settled = worked[len(worked) // 2 :]
    rows = sum(batch.rows_in for batch in settled)
    progress(f"skew: Spark, Zipf {zipf}, chi {chi}: {time.perf_counter() - began_s:.0f} s")
    return {
        "events_per_s": rows / sum(batch.batch_ms for batch in settled) * 1e3,
        # what routing can change: the CPU time of the busiest task of each batch, whatever else runs here
        "cpu_events_per_s": rows / sum(max(batch.routing["task_cpu_ms"]) for batch in settled) * 1e3,
        "lit": median([batch.routing["lit_by_stage"][1] for batch in settled]),
        "migrations": float(sum(batch.routing.get("observed", 0) for batch in batches)),
    }


def _note(found: dict[str, list[float]], plain: dict[str, float], ours: dict[str, float]) -> None:
    values = {"throughput_vs_hash": ours["events_per_s"] / plain["events_per_s"]}
    if "cpu_events_per_s" in ours:
        values["cpu_throughput_vs_hash"] = ours["cpu_events_per_s"] / plain["cpu_events_per_s"]
    values |= {f"hash_{name}": value for name, value in plain.items() if name != "migrations"}
    for name, value in (values | ours).items():
        found.setdefault(name, []).append(value)


def _summed(found: dict[str, list[float]], zipf: float) -> dict[str, Any]:
    summed: dict[str, Any] = {name: median(values) for name, values in found.items()}
    # no routing can give the fuller of the two less than this
    summed["best_share"] = best_share(popularity(ITEMS, zipf), WORKERS)
    return summed
