"""An app to be killed: many small batches, several kinds of state, and named points at which it ends itself.

Run as a program it runs the app on Spark. Its workers import this module too, because the functions of its
queries are here, so the points are reached in every process.
"""

from __future__ import annotations

import functools
import importlib
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.query.user_functions import Context, ProcessFunction
from penstock.routing.route import even_route
from penstock.spark.batches.balancing import Balancing
from penstock.state import files
from tests.reference import Row
from tests.spark.processes import KILL_AT

#: The process to be killed, along with the one that comes to the point.
DRIVER = "CRASH_DRIVER"
#: If it is set, partitions of keys move in every batch.
MIGRATE = "CRASH_MIGRATE"
#: A file that is made at the first death: there is no second. For tasks that are tried again.
ONCE = "CRASH_ONCE"

CARS = {"ts": "timestamp", "id": "int64", "k": "int32", "g": "string", "x": "float64?"}
ADS = {"at": "timestamp", "k": "int32", "v": "float64"}
EVENTS = 600

# -- the app -------------------------------------------------------------------------------------------------


class Bursts(ProcessFunction):
    """Per key, says how many events came before it was quiet for a while."""

    def on_event(self, event: Row, context: Context) -> list[Row]:
        state = context.state
        if state["until"] is not None:
            context.delete_timer(state["until"])
        state["until"] = context.time + 40
        context.set_timer(state["until"])
        state["n"] += 1
        return [{"k": context.key[0], "n": -state["n"]}] if state["n"] % 5 == 0 else []

    def on_timer(self, time_us: int, context: Context) -> list[Row]:
        n, context.state["n"], context.state["until"] = context.state["n"], 0, None
        return [{"k": context.key[0], "n": n}]


def inputs(joined: bool, events: int = EVENTS) -> dict[str, list[list[Row]]]:
    """The rows of each source, by partition; some come out of order, some late."""
    choose = random.Random(7)
    cars: list[Row] = []
    now = 1_000_000
    for number in range(events):
        now += choose.choice((0, 1, 1, 2, 5))
        behind = choose.choice((0, 0, 0, 3, 9, 60 if choose.random() < 0.1 else 0))
        x = None if choose.random() < 0.1 else choose.randint(-40, 40) / 8
        keys = {"k": choose.randrange(40), "g": choose.choice(("a", "b", "Bä", ""))}
        cars.append({"ts": now - behind, "id": number, **keys, "x": x})
    found = {"cars": [cars[0::2], cars[1::2]]}
    if joined:
        span = now - 1_000_000
        found["ads"] = [
            [
                {"at": 1_000_000 + number * span // 300, "k": choose.randrange(40), "v": number / 4}
                for number in range(300)
            ]
        ]
    return found


def build(output: Path | None, joined: bool, events: int = EVENTS) -> tuple[ps.App, dict[str, Any]]:
    """The app, with Parquet sinks in folders of ``output``, or else with sinks in memory; and its sinks."""
    app = ps.App("crash")
    rows = inputs(joined, events)
    both = [row for pair in zip(*rows["cars"], strict=True) for row in pair]
    cars = app.source("cars", ps.sources.Rows(both, CARS, partitions=2), event_time="ts", lateness="12us")
    queries = {
        "counts": cars.key_by("k").window(ps.tumbling("50us")).agg(n=ps.count(), total=ps.sum("x")),
        "sliding": cars.key_by("g")
        .window(ps.sliding("60us", "20us"))
        .agg(n=ps.count(), most=ps.max("x"), opening=ps.first("id"), middle=ps.median("x")),
        "best": cars.key_by("g").window(ps.tumbling("100us")).top(3, by="x").select("g", "id", "x", "rank"),
        "first": cars.deduplicate("k", "g", within="200us").select("k", "g", "id"),
        "bursts": cars.key_by("k").process(
            Bursts(), output={"k": "int32", "n": "int64"}, state={"n": "int64", "until": "timestamp?"}
        ),
        "sessions": cars.key_by("g", "k").window(ps.session("30us")).agg(n=ps.count(), last=ps.last("id")),
        "late": cars.key_by("k").window(ps.tumbling("50us")).agg(n=ps.count(), total=ps.sum("x")).late(),
        # keyed anew behind a window: a second stage
        "busy": cars.key_by("k")
        .window(ps.tumbling("50us"))
        .agg(n=ps.count(), total=ps.sum("x"))
        .key_by("n")
        .window(ps.tumbling("400us"))
        .agg(keys=ps.count(), of=ps.sum("k")),
    }
    if joined:
        ads = app.source("ads", ps.sources.Rows(rows["ads"][0], ADS), event_time="at", lateness="5us")
        slim = cars.select("k", "id")
        queries["joined"] = slim.join(ads, on="k", window=ps.tumbling("40us")).select("k", "id", "v")
        queries["near"] = slim.interval_join(ads, on="k", lower="-5us", upper="15us").select("k", "id", "v")
        low = ps.event("low", ps.col("x") < 0)
        high = ps.event("high", ps.col("x") > low["x"] + 2)
        queries["rising"] = cars.key_by("k").match(
            low.one_or_more() >> high,
            {"opens": low.first("id"), "n": low.count(), "to": high["id"]},
            within="90us",
        )
    sinks: dict[str, Any] = {}
    for name, stream in queries.items():
        sinks[name] = ps.sinks.Memory() if output is None else ps.sinks.Parquet(output / name)
        app.sink(name, stream, sinks[name])
    return app, sinks


# -- points to die at ----------------------------------------------------------------------------------------

#: What a point is wrapped around, and whether the process dies before it or after it; by the driver, or by a
#: worker with the driver.
POINTS = {
    # the driver, in the order of a batch
    "sink opened": ("penstock.connectors.files.table_folder:TableFolder.__init__", "after", "driver"),
    "first manifest": ("penstock.state.store:StateStore.commit", "before", "driver"),
    "sinks begun": ("penstock.spark.batches.opening:begin_writers", "after", "driver"),
    "deliveries known": ("penstock.spark.batches.opening:deliveries", "after", "driver"),
    "batch begins": ("penstock.spark.batches.driver:Driver.run", "before", "driver"),
    "rows collected": ("penstock.spark.batches.driver:deliver", "before", "driver"),
    "one sink written": (
        "penstock.connectors.files.table_folder:TableFolder.write_batch",
        "after",
        "driver",
    ),
    "all sinks written": ("penstock.spark.batches.driver:deliver", "after", "driver"),
    "manifest half written": ("penstock.state.files:_write_through", "half", "driver"),
    "manifest without its name": ("penstock.state.files:_write_through", "after", "driver"),
    "manifest has its name": ("penstock.state.store:StateStore.commit", "after", "driver"),
    "batch not in Spark's log": ("penstock.spark.batches.run:SparkRun._batch", "after", "driver"),
    "old files being removed": ("penstock.state.files:Folder.remove", "after", "driver"),
    "closing begins": ("penstock.spark.batches.driver:Driver.close", "before", "driver"),
    "closed": ("penstock.spark.batches.driver:Driver.close", "after", "driver"),
    # workers
    "state half written": ("penstock.state.files:_write_through", "half", "worker"),
    "state not renamed": ("penstock.state.files:_write_through", "after", "worker"),
    "state written": ("penstock.state.store:StateStore.write", "after", "worker"),
    "state loaded": ("penstock.spark.batches.ways.task_state:load", "after", "worker"),
    "task done": ("penstock.spark.batches.messages:to_batch", "after", "worker"),
}


def _arm() -> None:
    """Puts the point that the environment names in place, in the processes that it is for."""
    name, _, count = os.environ[KILL_AT].partition(":")
    target, when, where = POINTS[name]
    driver = int(os.environ.get(DRIVER, os.getpid()))
    os.environ[DRIVER] = str(driver)
    if (where == "driver") != (driver == os.getpid()):
        return
    module_name, _, path = target.partition(":")
    module: Any = importlib.import_module(module_name)
    *owners, attribute = path.split(".")
    owner = functools.reduce(getattr, owners, module)
    wrapped = _deadly(getattr(owner, attribute), when, int(count), driver)
    setattr(owner, attribute, wrapped)
    if not owners:  # modules that have taken the function by its name
        for other in list(sys.modules.values()):
            known = getattr(other, "__dict__", {})
            if other.__name__.startswith("penstock") and known.get(attribute) is wrapped.__wrapped__:
                setattr(other, attribute, wrapped)


def _deadly(function: Callable[..., Any], when: str, count: int, driver: int) -> Any:
    left, lock = count, threading.Lock()  # sinks are written by several threads

    @functools.wraps(function)
    def passing(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        with lock:
            left -= 1
            dies = left == 0
        if dies and when == "half":
            path, data = args
            with open(path, "wb") as file:
                file.write(bytes(data)[: len(data) // 2])
            _die(driver)
        if dies and when == "before":
            _die(driver)
        result = function(*args, **kwargs)
        if dies and when == "after":
            _die(driver)
        return result

    return passing


def _die(driver: int) -> None:
    once = os.environ.get(ONCE)
    if once is not None:
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
    else:
        os.kill(driver, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


assert files._write_through  # named in POINTS
if KILL_AT in os.environ:
    _arm()


def _always_moving(
    self: Balancing, reports: Any, route: tuple[int, ...], tasks: int, wanted: int
) -> tuple[int, ...]:
    """A quarter of the partitions goes on to the next task, another quarter each time."""
    turn = self.told.get("turn", 0) + 1
    self.told = {"turn": turn}
    if wanted != tasks:
        return even_route(len(route), wanted)
    return tuple(
        (owner + 1) % tasks if (partition + turn) % 4 == 0 else owner for partition, owner in enumerate(route)
    )


# -- the program ---------------------------------------------------------------------------------------------


def runtime(root: Path, tasks: str, batch_events: str | int) -> ps.Spark:
    """Spark with a checkpoint in this folder, as a driver's arguments say."""
    return ps.Spark(
        "local[2]",
        checkpoint=root / "checkpoint",
        tasks=None if tasks == "None" else int(tasks),
        batch_events=int(batch_events),
        settings={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
    )


def main(folder: str, joined: str, tasks: str, batch_events: str) -> None:
    root = Path(folder)
    app, _ = build(root / "out", joined == "joined")
    if MIGRATE in os.environ:
        Balancing.after = _always_moving  # type: ignore[method-assign]
    summary = runtime(root, tasks, batch_events).run(
        app.graph(), app.name, on_progress=lambda batch: print(f"batch {batch.batch_id}", flush=True)
    )
    print(f"complete: {summary.complete}", flush=True)
