"""Where operators run on Spark, as ``explain`` tells it."""

from __future__ import annotations

from pyspark.sql import SparkSession

import penstock as ps
from penstock.query.expr import col


def _by_id(app: ps.App) -> dict[str, str]:
    return ps.Spark().places(app.graph())


def test_what_follows_a_routing_stands_behind_it() -> None:
    app = ps.App("cars")
    rows = [{"ts": 0, "lane": 1, "speed": 2.0}]
    cars = app.source(
        "cars", ps.sources.Rows(rows, {"ts": "timestamp", "lane": "int32", "speed": "float64"}), "ts"
    )
    fast = cars.filter(col("speed") > 1, name="fast")
    counts = fast.key_by("lane").window(ps.tumbling("1s")).agg({"n": ps.count()}, name="counts")
    lanes = counts.select("lane", "n", name="lanes")
    best = lanes.window(ps.tumbling("1m")).top(3, by="n", name="best")
    first = counts.filter(col("n") > 1, name="many").deduplicate("lane", name="first")
    app.sink("best_lanes", best, ps.sinks.Memory())
    app.sink("first_lanes", first, ps.sinks.Memory())
    assert _by_id(app) == {
        "cars": "in the reading task",
        "fast": "in the reading task, in the kernel of counts",
        "counts": "stage 1, routed by lane, partial in the reading task",
        "lanes": "nowhere: only leaves columns out",
        "many": "stage 1",
        "best": "stage 2, in one task, partial in stage 1",
        "first": "stage 2, routed by lane",
        "best_lanes": "on the driver",
        "first_lanes": "on the driver",
    }


def test_first_steps_of_a_dataframe_are_native(spark: SparkSession) -> None:
    app = ps.App("rates")
    frame = spark.readStream.format("rate").load()
    rates = app.source("rates", ps.sources.Spark(frame), event_time="timestamp")
    even = rates.filter(col("value") % 2 == 0, name="even")
    counted = even.key_by("value").window(ps.tumbling("1s")).agg({"n": ps.count()}, name="counted")
    app.sink("out", counted, ps.sinks.Memory())
    found = _by_id(app)
    assert (found["rates"], found["even"]) == ("native in Spark", "native in Spark")
    assert found["counted"] == "stage 1, routed by value, partial native in Spark"
