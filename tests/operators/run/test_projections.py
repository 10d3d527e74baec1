"""Projections that only leave columns out run as no operator; all others, and all that matter, do."""

from __future__ import annotations

import penstock as ps
from penstock import col, count, tumbling
from penstock.operators.run.projections import without_plain_projections
from penstock.query.stream.stream import Stream

SCHEMA = {"ts": "timestamp", "k": "int64", "v": "int64"}
ROWS = [{"ts": i * 1_000, "k": i % 3, "v": i} for i in range(90)]


def stream_of(app: ps.App) -> Stream:
    return app.source("s", ps.sources.Rows(ROWS, SCHEMA), event_time="ts")


def ids(app: ps.App) -> list[str]:
    return [node.id for node in without_plain_projections(app.graph())]


def test_a_projection_before_steps_that_name_their_columns_is_left_out() -> None:
    app = ps.App("a")
    slim = stream_of(app).select("k", name="slim").filter(col("k") > 0, name="f")
    app.sink("out", slim.key_by("k").window(tumbling("1s")).agg(n=count(), name="w"), ps.sinks.Discard())
    assert ids(app) == ["s", "f", "w", "out"]


def test_a_projection_before_a_sink_stays_because_the_sink_takes_whole_events() -> None:
    app = ps.App("a")
    app.sink("out", stream_of(app).select("k", name="slim"), ps.sinks.Discard())
    assert ids(app) == ["s", "slim", "out"]


def test_a_projection_that_renames_or_computes_stays() -> None:
    app = ps.App("a")
    renamed = stream_of(app).select(key=col("k"), name="renamed").filter(col("key") > 0, name="f")
    app.sink("out", renamed, ps.sinks.Discard())
    assert ids(app) == ["s", "renamed", "f", "out"]


def test_a_projection_stays_where_late_events_are_read_whole() -> None:
    app = ps.App("a")
    windows = stream_of(app).select("k", name="slim").window(tumbling("1s")).agg(n=count(), name="w")
    app.sink("late", windows.late(), ps.sinks.Discard())
    assert ids(app) == ["s", "slim", "w", "late"]


def test_results_are_the_same_without_it() -> None:
    app, sink = ps.App("a"), ps.sinks.Memory()
    slim = stream_of(app).select("k").key_by("k")
    app.sink("out", slim.window(tumbling("30ms")).agg(n=count()), sink)
    metrics = app.run(on=ps.Node(workers=1, block_events=4)).metrics
    assert [operator.kind for operator in metrics.operators] == ["source", "agg", "sink"]
    found = sorted((row["k"], row["window_start"], row["n"]) for row in sink.rows())
    assert found == [(k, start, 10) for k in range(3) for start in (0, 30_000, 60_000)]
