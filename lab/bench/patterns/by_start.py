"""A pattern without a key by start: events a second of one detector and of several instances, on a node."""

from __future__ import annotations

import time

import numpy as np

from lab.bench.measuring.report import progress
from penstock.app import App
from penstock.engine.node import Node
from penstock.query.expr import col
from penstock.query.patterns.degree import Degree
from penstock.query.patterns.patterns import event
from penstock.query.types import Schema
from penstock.sinks import Discard
from penstock.sources import Columns

#: One event a millisecond, one in ten could begin a match, and a match has this long: 200 are open.
WITHIN = "2s"
DEGREES = (1, 2)
TASKS = 2
TRADES = Schema(ts="timestamp", id="int64", price="int64")


def trades(events: int, seed: int = 5) -> dict[str, np.ndarray]:
    """Prices without any order."""
    random = np.random.default_rng(seed)
    return {
        "ts": np.arange(events) * 1_000,
        "id": np.arange(events),
        "price": random.integers(0, 1_000, events),
    }


def measure_by_start(events: int, rounds: int) -> dict[str, list[float]]:
    """Events a second of one detector (``"sequential"``) and by degree, every round with all of them."""
    columns = trades(events)
    kinds: tuple[int | None, ...] = (None, *DEGREES)
    measured: dict[str, list[float]] = {_name(degree): [] for degree in kinds}
    for degree in kinds:
        run_match(trades(2_000), degree)  # compiles what there is to compile
    for number in range(rounds):
        for degree in kinds if number % 2 == 0 else kinds[::-1]:  # what drifts helps nobody
            began = time.perf_counter()
            run_match(columns, degree)
            rate = events / (time.perf_counter() - began)
            measured[_name(degree)].append(rate)
            progress(f"patterns: round {number + 1}, match by start, {_name(degree)}: {rate:,.0f} events/s")
    return measured


def run_match(columns: dict[str, np.ndarray], degree: int | None) -> int:
    """Runs the pattern to its end; returns how many matches there were.

    Every trade is compared with every open run: what it asks refers to earlier events.
    """
    low = event("low", col("price") < 100)
    rise = event("rise", (col("price") > low["price"] + 450) & (col("price") < low["price"] + 460))
    top = event("top", (col("price") > rise["price"] + 400) & (col("id") % 97 == 3))
    app = App("trades")
    stream = app.source("trades", Columns(columns, TRADES), event_time="ts")
    found = stream.match(
        low >> rise >> top,
        {"opens": low["id"], "rises": rise["id"], "closes": top["id"]},
        within=WITHIN,
        degree=None if degree is None else Degree(degree),
        name="match",
    )
    app.sink("found", found, Discard())
    # Instances stay where they are: two keys on two tasks need no balancing.
    summary = Node(workers=TASKS, tasks=TASKS, rebalance=None).run(app.graph())
    return summary.metrics["found"].processed


def _name(degree: int | None) -> str:
    return "sequential" if degree is None else str(degree)
