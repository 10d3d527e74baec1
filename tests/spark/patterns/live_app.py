"""An app without an end, to be stopped by Ctrl-C: cars on a road, as they come."""

from __future__ import annotations

import signal

import penstock as ps
from penstock.workloads.traffic.settings import TrafficSettings


def main(interrupt: str = "") -> None:
    app = ps.App("live")
    road = ps.sources.Traffic(TrafficSettings(cars=1_000, roads=2), seconds=3_600, real_time=True)
    cars = app.source("cars", road, event_time="ts")
    per_lane = cars.key_by("lane").window(ps.tumbling("1s")).agg(cars=ps.count())
    app.sink("per_lane", per_lane, ps.sinks.Memory())
    runtime = ps.Spark(
        "local[2]", settings={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    )
    summary = runtime.run(
        app.graph(),
        app.name,
        on_built=lambda built, _: (
            signal.raise_signal(signal.SIGINT) if interrupt == "start" and built == 1 else None
        ),
        on_progress=lambda batch: print(f"batch {batch.batch_id}", flush=True),
    )
    print(summary, flush=True)
