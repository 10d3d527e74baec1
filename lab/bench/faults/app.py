"""The app of the laboratory of faults: every kind of state and every durable sink, in a process of its own.

Workers import this module too, because the functions of its queries are here.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from lab.bench.faults.inputs import ADS, CARS, TICK_COUNT, TICKS, ticks
from lab.bench.faults.unprotected import Protection, switch_off
from penstock.metrics.batches import BatchProgress
from penstock.query.errors import PenstockError
from penstock.query.stream.stream import Stream
from penstock.state.files import sync

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What a run says when its input has been read, and when it has come to its end.
FINISHING, COMPLETE = "finishing", "complete"
#: The exit code of a run that ends with an error in our words.
REFUSAL = 3

#: The kind of sink that takes each query's rows.
SINKS = {
    "counts": "parquet",
    "sliding": "jsonl",
    "visits": "csv",
    "bursts": "jsonl",
    "first": "csv",
    "late": "parquet",
    "busy": "parquet",
    "joined": "parquet",
    "near": "jsonl",
    "rising": "parquet",
    "best": "spark",
    "ticks": "callback",
}


@dataclass(frozen=True)
class AppStart:
    """One start of the app. Everything that lasts is below ``folder``."""

    folder: str
    master: str = "local[2]"
    tasks: int | None = None
    batch_events: int = 60
    cars_as: str = "csv"
    by_address: bool = False  # the checkpoint as file://...
    batch_s: float = 0.0  # what each batch takes longer
    without: list[str] = field(default_factory=list)  # protections that are switched off
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return Path(self.folder)

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def output(self) -> Path:
        return self.root / "out"

    def told(self, batch: BatchProgress) -> None:
        """Says that a batch has counted."""
        print(f"batch {batch.batch_id}", flush=True)
        time.sleep(self.batch_s)

    def command(self) -> list[str]:
        """What runs it; an argument of the interpreter keeps this module from being ``__main__``."""
        return [sys.executable, "-c", f"import {__name__} as app; app.main()", json.dumps(asdict(self))]


class Bursts(ps.ProcessFunction):
    """Per key, says how many events came before it was quiet for a while."""

    def on_event(self, event: dict[str, Any], context: ps.Context) -> list[dict[str, Any]]:
        state = context.state
        if state["until"] is not None:
            context.delete_timer(state["until"])
        state["until"] = context.time + 40
        context.set_timer(state["until"])
        state["n"] += 1
        return []

    def on_timer(self, time_us: int, context: ps.Context) -> list[dict[str, Any]]:
        n, context.state["n"], context.state["until"] = context.state["n"], 0, None
        return [{"k": context.key[0], "at": time_us, "n": n}]


def queries(app: ps.App, inputs: Path, cars_as: str) -> dict[str, Stream]:
    """The app's queries; two rows of one are never equal, so that none can be taken for another."""
    formats: dict[str, Callable[..., Any]] = {
        "csv": ps.sources.Csv,
        "jsonl": ps.sources.JsonLines,
        "parquet": ps.sources.Parquet,
    }
    cars = app.source("cars", formats[cars_as](inputs / "cars", CARS), event_time="ts", lateness="12us")
    ads = app.source("ads", ps.sources.Parquet(inputs / "ads", ADS), event_time="at", lateness="5us")
    beats = app.source("beats", ps.sources.Generator(ticks, TICKS, limit=TICK_COUNT), event_time="at")
    begin = ps.col("window_start").cast("int64")
    counts = cars.key_by("k").window(ps.tumbling("50us")).agg(n=ps.count(), total=ps.sum("x"))
    slim = cars.select("ts", "k", "id")
    low = ps.event("low", ps.col("x") < 0)
    high = ps.event("high", ps.col("x") > low["x"] + 2)
    return {
        "counts": counts.select("k", "n", "total", begin=begin),
        "sliding": cars.key_by("g")
        .window(ps.sliding("60us", "20us"))
        .agg(n=ps.count(), most=ps.max("x"), opening=ps.first("id"), middle=ps.median("x"))
        .select("g", "n", "most", "opening", "middle", begin=begin),
        "visits": cars.key_by("g", "k")
        .window(ps.session("30us"))
        .agg(n=ps.count(), last=ps.last("id"))
        .select("g", "k", "n", "last", begin=begin),
        "bursts": cars.key_by("k").process(
            Bursts(),
            output={"k": "int32", "at": "int64", "n": "int64"},
            state={"n": "int64", "until": "timestamp?"},
        ),
        "first": cars.deduplicate("k", "g", within="200us").select("k", "g", "id"),
        "late": counts.late().select("id", "k", "g"),
        "busy": counts.key_by("n")  # keyed anew behind a window: a second stage
        .window(ps.tumbling("400us"))
        .agg(keys=ps.count(), of=ps.sum("k"))
        .select("n", "keys", "of", begin=begin),
        "joined": slim.join(ads, on="k", window=ps.tumbling("40us")).select("k", "id", "v"),
        "near": slim.interval_join(ads, on="k", lower="-5us", upper="15us").select("k", "id", "v"),
        "rising": cars.key_by("k")
        .match(
            low.one_or_more() >> high,
            {"opens": low.first("id"), "n": low.count(), "to": high["id"]},
            within="90us",
        )
        .select("k", "opens", "n", "to"),
        "best": cars.key_by("g").window(ps.tumbling("100us")).top(3, by="x").select("g", "id", "x", "rank"),
        "ticks": beats.key_by("k")
        .window(ps.tumbling("100us"))
        .agg(n=ps.count(), total=ps.sum("n"))
        .select("k", "n", "total", begin=begin),
    }


class NumberedFiles:
    """Keeps the rows of each batch in a file of its number, which Spark writes; one that comes again is
    replaced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        folder = self._folder / f"{batch_id:06}"
        frame.coalesce(1).write.mode("overwrite").json(str(folder))
        for path in (*folder.iterdir(), folder):  # Spark leaves it to the machine when that is on disk
            sync(path)
        _sync_names(self._folder)


class EachCall:
    """Keeps what each call was given, in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, rows: list[dict[str, Any]], batch_id: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{batch_id:06}-{uuid.uuid4().hex}.json"
        with open(path.with_suffix(".new"), "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()
            os.fsync(file.fileno())
        os.rename(path.with_suffix(".new"), path)
        _sync_names(self._folder)


def _sync_names(folder: Path) -> None:
    """Makes sure that what is in a folder has its name there, and the folder its own."""
    sync(folder)
    sync(folder.parent)


def sink(kind: str, path: Path) -> Any:
    """A query's sink, whose output is below this path."""
    match kind:
        case "parquet":
            return ps.sinks.Parquet(path)
        case "csv":
            return ps.sinks.Csv(path.with_suffix(".csv"))
        case "jsonl":
            return ps.sinks.JsonLines(path.with_suffix(".jsonl"))
        case "spark":
            return ps.sinks.Spark(NumberedFiles(path))
        case _:
            return ps.sinks.Callback(EachCall(path))


def build(plan: AppStart) -> ps.App:
    """The app with its durable sinks."""
    app = ps.App("faults")
    for name, stream in queries(app, plan.root / "input", plan.cars_as).items():
        app.sink(name, stream, sink(SINKS[name], plan.output / name))
    return app


def on_node(inputs: Path, cars_as: str) -> dict[str, list[dict[str, Any]]]:
    """Every query's rows, of one process that nobody disturbs."""
    app = ps.App("faults")
    memories = {}
    for name, stream in queries(app, inputs, cars_as).items():
        memories[name] = ps.sinks.Memory()
        app.sink(name, stream, memories[name])
    app.run(on=ps.Node(workers=1))
    return {name: memory.rows() for name, memory in memories.items()}


def main() -> None:
    """Runs a plan on Spark. Says each batch, and at the end that it is complete or, in our words, why not."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # of a run that hangs
    plan = AppStart(**json.loads(sys.argv[1]))
    for name in plan.without:
        switch_off(Protection(name))
    runtime = ps.Spark(
        plan.master,
        checkpoint=plan.checkpoint.as_uri() if plan.by_address else plan.checkpoint,
        tasks=plan.tasks,
        batch_events=plan.batch_events,
        settings={
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            **plan.settings,
        },
    )
    try:
        app = build(plan)
        run = runtime.start(app.graph(), app.name)
        run.on_progress = plan.told
        run.wait()
        print(FINISHING, flush=True)
        summary = run.finish()
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr, flush=True)
        sys.exit(REFUSAL)
    print(COMPLETE if summary.complete else "stopped", flush=True)
