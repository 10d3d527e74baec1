"""Column pruning: an output carries what someone downstream reads, and no more."""

from __future__ import annotations

import penstock as ps
from penstock import col, count, first, lit, tumbling
from penstock.operators.run.plan import LayoutPlan, plan
from penstock.query.graph import Port
from penstock.query.stream.stream import Stream

ROWS = [{"ts": 1, "k": 1, "v": 2.0, "unused": 3}]
SCHEMA = {"ts": "timestamp", "k": "int64", "v": "float64", "unused": "int64"}


def names(planned: LayoutPlan, node: str, port: Port = Port.MAIN) -> set[str]:
    return set(planned.layouts[node, port].names)


def app_with(ordered: bool = True) -> tuple[ps.App, Stream]:
    app = ps.App("a")
    data = {name: [row[name] for row in ROWS] for name in SCHEMA}
    source = ps.sources.Columns(data, schema=SCHEMA, ordered=ordered)
    return app, app.source("s", source, event_time="ts")


def test_a_source_carries_the_columns_that_are_read_and_its_event_time() -> None:
    app, stream = app_with()
    app.sink("out", stream.filter(col("k") == 1, name="f").select("v", name="p"), ps.sinks.Discard())
    planned = plan(app.graph())
    assert names(planned, "s") == {"ts", "k", "v"}
    assert names(planned, "f") == {"v"}
    assert names(planned, "p") == {"v"}


def test_with_pruning_off_the_source_carries_everything() -> None:
    app, stream = app_with()
    app.sink("out", stream.select("v"), ps.sinks.Discard())
    assert names(plan(app.graph(), prune_sources=False), "s") == set(SCHEMA)


def test_event_time_goes_on_hidden_where_its_column_is_dropped() -> None:
    app, stream = app_with()
    kept = stream.select("k", name="p").key_by("k").window(tumbling("1s")).agg(n=count())
    app.sink("out", kept, ps.sinks.Discard())
    planned = plan(app.graph())
    assert names(planned, "p") == {"k", "$time"}
    assert planned.layouts["p", Port.MAIN].time == "$time"
    assert planned.layouts["s", Port.MAIN].time == "ts"


def test_the_late_flag_flows_only_from_sources_that_can_be_late_to_steps_that_care() -> None:
    app, stream = app_with(ordered=False)
    app.sink("plain", stream.select("v", name="p"), ps.sinks.Discard())
    assert "$late" not in names(plan(app.graph()), "s")
    app.sink("windows", stream.window(tumbling("1s")).agg(n=count()), ps.sinks.Discard())
    assert "$late" in names(plan(app.graph()), "s")
    app, stream = app_with(ordered=True)
    app.sink("windows", stream.window(tumbling("1s")).agg(n=count()), ps.sinks.Discard())
    assert "$late" not in names(plan(app.graph()), "s")


def test_order_flows_only_to_results_that_depend_on_it() -> None:
    app, stream = app_with()
    app.sink("sums", stream.window(tumbling("1s")).agg(n=count()), ps.sinks.Discard())
    assert "$order" not in names(plan(app.graph()), "s")
    app.sink("firsts", stream.window(tumbling("1s")).agg(v=first("v")), ps.sinks.Discard())
    assert "$order" in names(plan(app.graph()), "s")


def test_sub_order_exists_only_below_steps_that_multiply_events() -> None:
    app, stream = app_with()
    doubled = stream.explode([{"k": col("k")}, {"k": col("k") + 1}], name="e")
    app.sink("firsts", doubled.window(tumbling("1s")).agg(v=first("k")), ps.sinks.Discard())
    planned = plan(app.graph())
    assert "$sub" in names(planned, "e")
    assert "$sub" not in names(planned, "s")


def test_a_late_output_carries_what_its_readers_want_and_the_input_provides_it() -> None:
    app, stream = app_with(ordered=False)
    windows = stream.window(tumbling("1s")).agg(n=count(), name="w")
    app.sink("late", windows.late().select("unused"), ps.sinks.Discard())
    planned = plan(app.graph())
    assert names(planned, "w", Port.LATE) == {"unused"}
    assert "unused" in names(planned, "s")
    assert ("w", Port.MAIN) not in planned.layouts


def test_constants_alone_still_know_how_many_events_there_are() -> None:
    app, stream = app_with()
    app.sink("ones", stream.select(one=lit(1), name="p").select(two=lit(2)), ps.sinks.Discard())
    planned = plan(app.graph())
    assert len(names(planned, "p")) == 1
