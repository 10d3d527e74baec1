"""An app with an unkeyed pattern whose degree changes, to be killed in the middle of its batches."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import penstock as ps
from tests.spark import crash_app  # puts the point to die at in place

Rows = list[dict[str, Any]]

TRADES = {"ts": "timestamp", "id": "int64", "price": "int64"}
EVENTS = 800
#: Up, down to one, and up again, at positions that no batch knows of.
DEGREE = ps.Degree(2, changes=((130, 4), (310, 1), (555, 3)))

assert crash_app.POINTS


def rows() -> Rows:
    """Trades, some of them out of order and a few late."""
    choose, now, found = random.Random(11), 1_000_000, []
    for number in range(EVENTS):
        now += choose.choice((0, 1, 1, 2, 4))
        behind = choose.choice((0, 0, 0, 2, 7, 50 if choose.random() < 0.1 else 0))
        found.append({"ts": now - behind, "id": number, "price": choose.randrange(12)})
    return found


def as_it_is(event: dict[str, Any]) -> list[dict[str, Any]]:
    """For its sake tasks import this module, and with it the point to die at."""
    return [event]


def build(output: Path | None, degree: ps.Degree | None) -> tuple[ps.App, dict[str, Any]]:
    """The app, with Parquet sinks in folders of ``output``, or else with sinks in memory; and its sinks."""
    app = ps.App("by start")
    trades = app.source(
        "trades", ps.sources.Rows(rows(), TRADES, partitions=2), event_time="ts", lateness="10us"
    )
    trades = trades.flat_map(as_it_is, TRADES)
    low = ps.event("low", ps.col("price") < 3)
    high = ps.event("high", ps.col("price") > low["price"] + 6)
    fall = ps.event("fall", ps.col("price") < high["price"] - 4)
    swings = trades.match(
        low >> high.one_or_more() >> fall,
        {"opens": low["id"], "highs": high.count(), "last": high["id"], "closes": fall["id"]},
        within="18us",
        contiguity="any",
        max_runs=100_000,
        degree=degree,
        name="swing",
    )
    quiet = trades.match(
        low >> ~ps.event("jump", ps.col("price") > 10), {"at": low["id"]}, within="25us", degree=degree
    )
    sinks: dict[str, Any] = {}
    for name, stream in {"swings": swings, "quiet": quiet, "late": swings.late()}.items():
        sinks[name] = ps.sinks.Memory() if output is None else ps.sinks.Parquet(output / name)
        app.sink(name, stream, sinks[name])
    return app, sinks


@cache
def sequential() -> dict[str, Rows]:
    """The rows of the app without a degree, on one node."""
    app, sinks = build(None, None)
    app.run(on=ps.Node(workers=1))
    found = {name: sink.rows() for name, sink in sinks.items()}
    assert min(map(len, found.values())) > 5
    assert len(found["swings"]) > 500
    return found


def main(folder: str, tasks: str, batch_events: str) -> None:
    root = Path(folder)
    app, _ = build(root / "out", DEGREE)
    runtime = crash_app.runtime(root, tasks, int(batch_events))
    summary = runtime.run(app.graph(), app.name)
    print(f"complete: {summary.complete}", flush=True)
