"""Wrong queries fail while they are written: what, which step, which line, and what would fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.app import App
from penstock.connectors.files.sink import Parquet
from penstock.query.aggregates import avg, count
from penstock.query.errors import UNKNOWN_ORIGIN, Origin, QueryError, Writing, caller_origin
from penstock.query.expr import col, lit
from penstock.query.stream.stream import Stream
from penstock.query.types import Schema
from penstock.query.user_functions import ProcessFunction
from penstock.query.windows import Session, Sliding, session, tumbling
from tests.query.stream.streams import CARS, DeclaredSource, NoSink, Traffic, fails

SECOND = tumbling("1s")


@pytest.fixture
def traffic() -> Traffic:
    return Traffic()


@pytest.fixture
def cars(traffic: Traffic) -> Stream:
    return traffic.cars


# -- the error itself ----------------------------------------------------------------------------------------


def test_an_error_says_what_where_and_what_would_fit() -> None:
    error = QueryError("no", step="s", detail="got 3", hint="write 4", origin=Origin("q.py", 7))
    assert str(error) == "no: step 's' got 3; write 4 (written at q.py:7)"
    assert str(QueryError("no", origin=UNKNOWN_ORIGIN)) == "no"


def test_the_line_is_the_users() -> None:
    error = QueryError("no")
    assert error.origin == Origin(__file__, caller_origin().line - 1)


def test_the_innermost_step_wins() -> None:
    def nested() -> None:
        with Writing("outer"), Writing("inner", "mine"):
            raise QueryError("no")

    assert fails(nested, "step 'mine'").step == "mine"


def test_the_line_of_a_chain_is_that_of_the_step(cars: Stream) -> None:
    with pytest.raises(QueryError) as caught:
        (
            cars.filter(col("speed") > 30)
            .select("lane")
            .filter(col("speed") > 30)  # three lines below the with
            .filter(col("lane") > 30)
        )
    assert caught.value.origin.file == __file__
    assert "columns here: lane" in str(caught.value)


def test_a_named_step_is_called_by_its_name(cars: Stream) -> None:
    fails(lambda: cars.filter(col("x") > 1, name="fast"), step="fast")


# -- stateless steps ----------------------------------------


def test_filter(cars: Stream) -> None:
    fails(
        lambda: cars.filter(col("sped") > 1), "unknown column 'sped'", "did you mean 'speed'?", step="filter"
    )
    fails(
        lambda: cars.filter(col("speed")),
        "must be true or false",
        "speed of type float64",
        "> 0",
        step="filter",
    )
    fails(lambda: cars.filter(col("ts")), "must be true or false", step="filter")
    fails(lambda: cars.filter("speed > 1"), "must be an expression", "col('speed')", step="filter")  # type: ignore[arg-type]
    fails(lambda: cars.filter(None), "null constant needs a type", step="filter")  # type: ignore[arg-type]
    fails(
        lambda: cars.filter(col("lane") == "x"),
        "types do not fit together",
        "int32 and string",
        step="filter",
    )


def test_select(cars: Stream) -> None:
    fails(lambda: cars.select("lane", "x"), "unknown column 'x'", step="select")
    fails(lambda: cars.select("lane", lane=col("id")), "duplicate column 'lane'", step="select")
    fails(lambda: cars.select("lane", "lane"), "duplicate column 'lane'", step="select")
    fails(lambda: cars.select(), "at least one column", step="select")
    fails(lambda: cars.select(col("lane") + 1), "a computed column needs a name", step="select")  # type: ignore[arg-type]
    fails(lambda: cars.select(3), "not a column", "got 3", step="select")  # type: ignore[arg-type]
    fails(lambda: cars.select(x="lane"), "could be a column or a constant", "col('lane') or lit('lane')")
    fails(lambda: cars.select(x=None), "a null constant needs a type", step="select")
    fails(lambda: cars.select({"$x": col("lane")}), "column name '$x' is reserved", step="select")
    fails(lambda: cars.select(_row=col("lane")), "column name '_row' is reserved", step="select")
    fails(lambda: cars.select({3: col("lane")}), "name must be text", step="select")  # type: ignore[dict-item]
    fails(lambda: cars.select(x=col("lane") + "a"), "'+' needs two numbers", step="select")


def test_with_columns_drop_and_rename(cars: Stream) -> None:
    fails(lambda: cars.with_columns(), "with_columns needs a column", step="with_columns")
    fails(lambda: cars.with_columns({"x": 1}, x=2), "duplicate column 'x'", step="with_columns")
    fails(lambda: cars.with_columns(x="a"), "could be a column or a constant", step="with_columns")
    fails(lambda: cars.with_columns({"$t": 1}), "'$t' is reserved", step="with_columns")
    fails(lambda: cars.drop("x"), "unknown column 'x'", step="drop")
    fails(lambda: cars.drop(*CARS.names), "at least one column", step="drop")
    fails(lambda: cars.drop(), "drop needs a column", step="drop")
    fails(lambda: cars.drop(col("lane")), "must be column names", step="drop")  # type: ignore[arg-type]
    fails(lambda: cars.rename(x="y"), "unknown column 'x'", step="rename")
    fails(lambda: cars.rename(lane="id"), "duplicate column 'id'", step="rename")
    fails(lambda: cars.rename(lane=""), "name must be text", step="rename")
    fails(lambda: cars.rename(), "rename needs a column", step="rename")
    fails(lambda: cars.rename(lane="$lane"), "'$lane' is reserved", step="rename")


def test_names_of_steps(cars: Stream) -> None:
    for name in ("", " ", "a\nb", "$x", 3, col("lane")):
        with pytest.raises(QueryError, match="a step's name must be a name"):
            cars.filter(col("lane") > 1, name=name)  # type: ignore[arg-type]
    fails(lambda: cars.with_columns(x=1, name=col("id")), "a column called 'name'", step="with_columns")  # type: ignore[arg-type]
    fails(lambda: cars.key_by("lane", name=3), "must be a name", step="key_by")  # type: ignore[arg-type]


def test_explode(cars: Stream) -> None:
    fails(lambda: cars.explode([]), "at least one row", step="explode")
    fails(lambda: cars.explode([3]), "must be a dict", step="explode")  # type: ignore[list-item]
    fails(
        lambda: cars.explode([dict(a=1), dict(b=1)]), "same columns", "a and b", "typed null", step="explode"
    )
    fails(
        lambda: cars.explode([dict(a=1), dict(a=lit("x"))]),
        "column 'a' has types that do not fit",
        step="explode",
    )
    fails(lambda: cars.explode([dict(a=1)], where=[None, None]), "one condition per row", "got 2 for 1 rows")
    fails(lambda: cars.explode([dict(a=1)], where=[col("lane")]), "must be true or false", step="explode")
    fails(lambda: cars.explode([dict(a=1)], keep=["x"]), "unknown column 'x'", step="explode")
    fails(lambda: cars.explode([dict(id=1)], keep=["id"]), "duplicate column 'id'", step="explode")
    fails(lambda: cars.explode([dict(a="x")]), "could be a column or a constant", step="explode")
    fails(lambda: cars.explode([dict(a=col("x"))]), "unknown column 'x'", step="explode")
    fails(lambda: cars.explode([{}]), "at least one column", step="explode")


@pytest.mark.parametrize("method", ["flat_map", "batch"])
def test_functions(cars: Stream, method: str) -> None:
    make: Any = getattr(cars, method)
    fails(lambda: make(3, output=CARS), f"{method} needs a function", "got 3", step=method)
    fails(lambda: make(print, output={"x": "int16"}), "unknown type 'int16'", step=method)
    fails(lambda: make(print, output=3), "not a schema", step=method)
    fails(lambda: make(print, output={}), "at least one column", step=method)
    fails(lambda: make(print, output={"_row": "int64"}), "'_row' is reserved", step=method)
    fails(lambda: make(print, output={"$x": "int64"}), "'$x' is reserved", step=method)


def test_union(traffic: Traffic) -> None:
    cars, tolls = traffic.cars, traffic.tolls
    fails(lambda: cars.union(), "union needs another stream", step="union")
    fails(lambda: cars.union(3), "not a stream", "got 3", step="union")  # type: ignore[arg-type]
    fails(lambda: cars.union(cars.window(SECOND)), "a window has no events yet", ".agg", step="union")  # type: ignore[arg-type]
    fails(lambda: cars.union(tolls), "is not in the other stream", "select or rename first", step="union")
    fails(lambda: cars.drop("lane").union(cars), "column 'lane' is not in this stream", step="union")
    fails(
        lambda: cars.select(x=col("lane")).union(cars.select(x=col("id"))),
        "column 'x' has two types",
        "int32 and int64",
        "cast('int32')",
        step="union",
    )
    fails(lambda: cars.union(Traffic().cars), "streams of two apps", step="union")


# -- steps that depend on time ----------------------------------------


def test_key_by(cars: Stream) -> None:
    fails(lambda: cars.key_by(), "key_by needs a key", step="key_by")
    fails(lambda: cars.key_by("x"), "unknown column 'x'", step="key_by")
    fails(lambda: cars.key_by("lane", "lane"), "duplicate column 'lane'", step="key_by")
    fails(lambda: cars.key_by(lane=col("id")), "column 'lane' is there already", step="key_by")
    fails(lambda: cars.key_by(col("lane")), "must be column names", step="key_by")  # type: ignore[arg-type]
    fails(lambda: cars.key_by(k="lane"), "could be a column or a constant", step="key_by")


def test_windows(cars: Stream) -> None:
    fails(lambda: cars.window("1s"), "not a window", "tumbling('10s')", step="window")  # type: ignore[arg-type]
    fails(lambda: cars.key_by("id").window(None), "not a window", step="window")  # type: ignore[arg-type]
    fails(lambda: cars.window(Sliding(0, 0)), "window size must be positive", step="window")
    fails(lambda: cars.window(Sliding(5, 6)), "must not exceed its size", step="window")
    fails(lambda: cars.window(Session(0)), "window size must be positive", step="window")


def test_agg(cars: Stream) -> None:
    window = cars.key_by("lane").window(SECOND)
    fails(lambda: window.agg(), "agg needs an aggregate", "count()", step="agg")
    fails(lambda: window.agg(n=3), "not an aggregate", "got 3 for 'n'", step="agg")  # type: ignore[arg-type]
    fails(lambda: window.agg(n=count), "not an aggregate", step="agg")  # type: ignore[arg-type]
    fails(lambda: window.agg(n=avg("x")), "unknown column 'x'", step="agg")
    fails(lambda: window.agg(n=avg("ts")), "avg needs a number", step="agg")
    fails(lambda: window.agg(lane=count()), "column 'lane' is taken by a key", step="agg")
    fails(lambda: window.agg(window_start=count()), "'window_start' is taken by the window", step="agg")
    fails(lambda: window.agg(window_end=count()), "'window_end' is taken by the window", step="agg")
    fails(lambda: window.agg({"$n": count()}), "'$n' is reserved", step="agg")
    again = window.agg(n=count()).key_by("window_start").window(SECOND)
    fails(lambda: again.agg(n=count()), "key 'window_start' is taken by the window", "rename", step="agg")


def test_top(cars: Stream) -> None:
    window = cars.window(SECOND)
    for k in (0, -1, True, 1.5, "3"):
        with pytest.raises(QueryError, match="at least 1"):
            window.top(k, by="speed")  # type: ignore[arg-type]
    fails(lambda: window.top(3, by="sped"), "unknown column 'sped'", step="top")
    fails(
        lambda: window.top(3, by=col("lane") == 1),
        "a number, a timestamp or a string",
        "columns that would fit",
        step="top",
    )
    fails(lambda: window.top(3, by=["speed", "id"], descending=[True]), "one direction for each", step="top")
    fails(lambda: window.top(3, by=[]), "one direction for each", step="top")
    fails(lambda: cars.window(session("1s")).top(3, by="speed"), "takes no session window", step="top")
    fails(
        lambda: cars.rename(lane="rank").window(SECOND).top(3, by="speed"),
        "column 'rank' is taken by the ranking",
        step="top",
    )
    counted = window.agg(n=count())
    fails(
        lambda: counted.window(SECOND).top(3, by="n"), "column 'window_start' is taken", "rename", step="top"
    )


def test_deduplicate(cars: Stream) -> None:
    fails(lambda: cars.deduplicate(), "deduplicate needs a key", step="deduplicate")
    fails(lambda: cars.deduplicate("x"), "unknown column 'x'", step="deduplicate")
    fails(lambda: cars.deduplicate("id", within="0s"), "within must be positive", step="deduplicate")
    fails(lambda: cars.deduplicate("id", within="-1s"), "within must be positive", step="deduplicate")
    fails(lambda: cars.deduplicate("id", within="x"), "within is not a length of time", step="deduplicate")


def test_process(cars: Stream) -> None:
    keyed = cars.key_by("lane")
    fails(lambda: keyed.process(print, output=CARS), "needs a ProcessFunction", "subclass", step="process")  # type: ignore[arg-type]
    fails(lambda: keyed.process(ProcessFunction, output=CARS), "pass an instance", step="process")  # type: ignore[arg-type]
    made = ProcessFunction()
    fails(lambda: keyed.process(made, output={"x": "text"}), "unknown type 'text'", step="process")
    fails(
        lambda: keyed.process(made, output=CARS, state={"x": "list"}), "unknown type 'list'", step="process"
    )
    fails(lambda: keyed.process(made, output=CARS, state=["x"]), "not a schema", step="process")  # type: ignore[arg-type]
    fails(lambda: keyed.process(made, output=CARS, state={"$x": "int64"}), "'$x' is reserved", step="process")
    fails(lambda: keyed.process(made, output={}), "at least one column", step="process")


def test_side_outputs(traffic: Traffic) -> None:
    cars = traffic.cars
    agg = cars.window(SECOND).agg(n=count())
    fails(lambda: cars.late(), "only operators that depend on time", "agg, top", step="late")
    fails(lambda: agg.filter(col("n") > 1).late(), "only operators that depend on time", step="late")
    fails(lambda: agg.late().late(), "only operators that depend on time", step="late")
    fails(lambda: agg.late("right"), "there is one input only", step="late")
    fails(lambda: agg.late("middle"), "side is 'left' or 'right'", step="late")
    fails(
        lambda: cars.filter(col("lane") == 1).bad_records(),
        "only sources have bad records",
        step="bad_records",
    )
    fails(lambda: cars.bad_records().bad_records(), "only sources have bad records", step="bad_records")


@pytest.mark.parametrize(
    "use",
    [
        lambda stream: stream.window(SECOND),
        lambda stream: stream.key_by("x").window(SECOND),
        lambda stream: stream.deduplicate("x"),
        lambda stream: stream.key_by("x").process(ProcessFunction(), output=CARS),
        lambda stream: stream.join(stream, on="x", window=SECOND),
        lambda stream: stream.interval_join(stream, on="x", lower="0s", upper="0s"),
        lambda stream: stream.cogroup(stream, on="x", window=SECOND, function=print, output=CARS),
    ],
)
def test_late_events_and_bad_records_have_no_place_in_time(traffic: Traffic, use: Any) -> None:
    late = traffic.cars.deduplicate("id").late().select(x=col("id"))
    bad = traffic.cars.bad_records().filter(col("partition") == 0).select(x=col("offset"))
    with pytest.raises(QueryError, match=r"cannot be windowed.*late events stay late"):
        use(late)
    with pytest.raises(QueryError, match=r"cannot be windowed.*bad records have no event time"):
        use(bad)
    with pytest.raises(QueryError, match="bad records have no event time"):
        use(traffic.cars.select(x=col("id")).union(bad))


# -- sources, sinks and apps ----------------------------------------


def test_sources(traffic: Traffic) -> None:
    app = traffic.app

    def source(
        name: Any = "s", schema: Schema = CARS, event_time: Any = "ts", lateness: Any = "0s"
    ) -> Stream:
        return app.source(name, DeclaredSource(schema), event_time=event_time, lateness=lateness)

    fails(
        lambda: source("cars"), "duplicate name 'cars'", "a source of that name was written at", step="cars"
    )
    fails(lambda: source(""), "a source's name must be a name", step="source")
    fails(lambda: source(3), "a source's name must be a name", step="source")
    fails(lambda: source(event_time="t"), "unknown column 't'", "columns that would fit: ts", step="s")
    fails(lambda: source(event_time=None), "unknown column None", step="s")
    fails(lambda: source(event_time="id"), "must be a timestamp", "got id: int64", "would fit: ts", step="s")
    fails(
        lambda: source(schema=Schema(t="timestamp?"), event_time="t"),
        "must never be null",
        "declare a column",
        step="s",
    )
    fails(lambda: source(lateness="-1s"), "lateness must not be negative", step="s")
    fails(lambda: source(lateness="x"), "lateness is not a length of time", step="s")
    fails(lambda: source(lateness=5), "lateness must be text or a timedelta", step="s")
    fails(lambda: source(schema=Schema({"$x": "int64", "ts": "timestamp"})), "'$x' is reserved", step="s")
    fails(lambda: source(schema=Schema({"_row": "int64", "ts": "timestamp"})), "'_row' is reserved", step="s")
    fails(lambda: app.source("s", [1, 2], event_time="ts"), "not a source", step="s")  # type: ignore[arg-type]
    assert app.graph().nodes == ()  # none of these was registered
    source()


def test_sinks(traffic: Traffic) -> None:
    app, cars, sink = traffic.app, traffic.cars, NoSink()
    fails(lambda: app.sink("a", None, sink), "a sink needs an input", "got None", step="a")  # type: ignore[arg-type]
    fails(lambda: app.sink("a", 3, sink), "not a stream", "got 3", step="a")  # type: ignore[arg-type]
    fails(lambda: app.sink("a", cars.window(SECOND), sink), "a window has no events yet", ".agg", step="a")  # type: ignore[arg-type]
    fails(lambda: app.sink("a", cars, None), "not a sink", "got None", step="a")  # type: ignore[arg-type]
    fails(lambda: app.sink("a", cars, NoSink), "not a sink", step="a")  # type: ignore[arg-type]
    folder = Parquet("out/a")
    app.sink("one", cars, folder)
    fails(
        lambda: app.sink("two", cars, Parquet(Path("out/a").absolute())),
        "two sinks write to the same place",
        "sink 'one' writes to '",
        step="two",
    )
    fails(lambda: app.sink("", cars, sink), "a sink's name must be a name", step="sink")
    fails(lambda: app.sink("cars", cars, sink), "duplicate name 'cars'", "a source of that name", step="cars")
    fails(lambda: app.sink("a", Traffic().cars, sink), "belongs to another app", step="a")
    app.sink("a", cars, sink)
    fails(lambda: app.sink("a", cars, sink), "duplicate name 'a'", "a sink of that name", step="a")
    fails(
        lambda: app.source("a", DeclaredSource(CARS), event_time="ts"),
        "duplicate name 'a'",
        "a sink of that name",
        step="a",
    )


def test_apps(traffic: Traffic) -> None:
    fails(lambda: App(""), "an app's name must be a name", step="App")
    fails(lambda: App(None), "an app's name must be a name", step="App")  # type: ignore[arg-type]
    fails(lambda: traffic.app.run(), "the app has no sinks", "app.sink(", step="run")
    fails(lambda: traffic.app.explain("png"), "unknown format", "'png'", "'mermaid'", step="explain")
    traffic.sink("a", traffic.cars)
    fails(lambda: traffic.app.run(on="spark"), "not a runtime", "ps.Node", step="run")  # type: ignore[call-overload]
    fails(lambda: traffic.app.run(on=dict), "not a runtime", step="run")  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "a/b", "a\\b", ".", "..", ".hidden", "ä" * 101])
def test_a_name_is_no_path(name: str, traffic: Traffic, cars: Stream) -> None:
    source = DeclaredSource(CARS)
    fails(lambda: traffic.app.source(name, source, "ts"), "a source's name must be fit for a file")
    fails(lambda: traffic.app.sink(name, cars, NoSink()), "a sink's name must be fit for a file")
    fails(lambda: cars.filter(col("speed") > 30, name=name), "a step's name must be fit for a file")
    fails(lambda: App(name), "an app's name must be fit for a file", f"got {name!r}; leave out '/'")


def test_a_name_may_have_blanks_dots_and_quotes() -> None:
    assert App("per lane, 'fast'. ö").name == "per lane, 'fast'. ö"
