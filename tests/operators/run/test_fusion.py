"""Steps without state run in the kernel of the operator that alone reads them, and nowhere else."""

from __future__ import annotations

import penstock as ps
from penstock import col, count, session, tumbling
from penstock.cep import catalogue
from penstock.operators.run.fusion import fronts, places_of
from penstock.query.stream.stream import Stream

assert catalogue.operator_for  # all operators are there
SCHEMA = {"ts": "timestamp", "k": "int64", "v": "int64"}
TABLE = {"k": [0, 1], "name": ["a", "b"]}


def source(app: ps.App) -> Stream:
    return app.source("s", ps.sources.Rows([], SCHEMA), event_time="ts")


def chain(app: ps.App) -> Stream:
    computed = source(app).filter(col("v") > 0, name="f").with_columns(w=col("v") * 2, name="c")
    return computed.lookup(TABLE, on="k", columns=["name"], name="l")


def fused(app: ps.App) -> dict[str, list[str]]:
    return {reader: [link.id for link in front] for reader, front in fronts(app.graph()).items()}


def test_a_row_of_steps_stands_in_front_of_a_window_aggregate() -> None:
    app = ps.App("a")
    app.sink(
        "out", chain(app).key_by("name").window(tumbling("1s")).agg(n=count(), name="w"), ps.sinks.Discard()
    )
    assert fused(app) == {"w": ["f", "c", "l"]}
    assert places_of(fronts(app.graph()))["c"] == "in the kernel of w"


def test_the_last_of_a_row_of_steps_takes_those_in_front_of_it() -> None:
    app = ps.App("a")
    app.sink("out", chain(app), ps.sinks.Discard())
    assert fused(app) == {"l": ["f", "c"]}


def test_a_step_with_two_readers_is_written_once_for_both() -> None:
    app = ps.App("a")
    both = source(app).filter(col("v") > 0, name="f")
    app.sink("one", both.filter(col("v") > 1, name="f1"), ps.sinks.Discard())
    app.sink("two", both.filter(col("v") > 2, name="f2"), ps.sinks.Discard())
    assert fused(app) == {}


def test_a_window_whose_late_events_are_read_needs_whole_events() -> None:
    app = ps.App("a")
    window = source(app).filter(col("v") > 0, name="f").window(tumbling("1s")).agg(n=count(), name="w")
    app.sink("out", window, ps.sinks.Discard())
    app.sink("late", window.late(), ps.sinks.Discard())
    assert fused(app) == {}


def test_a_window_of_another_kind_reads_what_is_written() -> None:
    app = ps.App("a")
    window = source(app).filter(col("v") > 0, name="f").window(session("1s")).agg(n=count(), name="w")
    app.sink("out", window, ps.sinks.Discard())
    assert fused(app) == {}


def test_a_step_is_kept_apart_where_its_reader_asks_for_it() -> None:
    app = ps.App("a")
    app.sink("out", chain(app), ps.sinks.Discard())
    apart = fronts(app.graph(), lambda before, reader: reader.id == "l")
    assert {reader: [link.id for link in front] for reader, front in apart.items()} == {"c": ["f"]}
