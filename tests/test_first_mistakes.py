"""First mistakes: what people write on their first day, and the message that each of them gets."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock import avg, col, count, session, tumbling
from penstock.query.errors import PenstockError, QueryError

CARS = {"ts": "timestamp", "id": "int64", "lane": "int32", "speed": "float64?", "name": "string"}
ROWS = [
    dict(ts=1_700_000_000_000_000 + i * 1_000_000, id=i, lane=i % 3, speed=1.0 * i, name=f"car {i}")
    for i in range(6)
]
MINUTE = tumbling("1m")

Mistake = Callable[[Any], Any]


def cars() -> Any:
    """Not typed: a first day has no mypy."""
    return ps.App("first").source("cars", ps.sources.Rows(ROWS, CARS), event_time="ts")


def forgets_return(event: dict[str, Any]) -> Any:
    [dict(id=event["id"])]


class ForgetsReturn(ps.ProcessFunction):
    def on_event(self, event: dict[str, Any], context: ps.Context) -> Any:
        dict(id=event["id"])


WHILE_WRITTEN: dict[str, tuple[Mistake, tuple[str, ...]]] = {
    "aggregates without a window": (
        lambda cars: cars.key_by("lane").agg(n=count()),
        ("a stream has no 'agg'", "window the events first: .window(tumbling('10s'))"),
    ),
    "an aggregate without a name": (
        lambda cars: cars.window(MINUTE).agg(count()),
        ("an aggregate needs a name: step 'agg' got count()", "write agg(x=count())"),
    ),
    "several aggregates without names": (
        lambda cars: cars.window(MINUTE).agg(count(), avg("speed")),
        ("agg got too many values without a name", "agg(n=count(), speed=avg('speed'))"),
    ),
    "an aggregate as a method": (
        lambda cars: cars.window(MINUTE).agg(speed=col("speed").avg()),
        ("expressions have no 'avg'", "agg(speed=avg('speed'))"),
    ),
    "an aggregate as text": (
        lambda cars: cars.window(MINUTE).agg(n="count"),
        ("not an aggregate: step 'agg' got 'count' for 'n'", "avg('speed')"),
    ),
    "a join without a window": (
        lambda cars: cars.join(cars, on="id"),
        ("join needs 'window'", "join(other, on='id', window=tumbling('1m'))"),
    ),
    "a join without keys": (
        lambda cars: cars.join(cars, window=MINUTE),
        ("join needs 'on'", "on='id'"),
    ),
    "a left join": (
        lambda cars: cars.join(cars, on="id", window=MINUTE, how="left"),
        ("join takes no 'how'", "group_join gives every event", "lookup(..., how='left')"),
    ),
    "a left interval join": (
        lambda cars: cars.interval_join(cars, on="id", lower="0s", upper="1s", how="left"),
        ("interval_join takes no 'how'", "group_join"),
    ),
    "keys of two types": (
        lambda cars: cars.join(cars.select("ts", id=col("ts")), on="id", window=MINUTE),
        ("key types do not match", "with_columns(id=col('id').cast('timestamp'))"),
    ),
    "keys without a cast between them": (
        lambda cars: cars.join(cars.select({"ts": col("ts"), "name": col("ts")}), on="name", window=MINUTE),
        ("key types do not match", "there is no cast between string and timestamp"),
    ),
    "a source without its time": (
        lambda cars: ps.App("second").source("cars", ps.sources.Rows(ROWS, CARS)),  # type: ignore[call-arg]
        ("source needs 'event_time'", "event_time='ts'"),
    ),
    "a time that is a number": (
        lambda cars: ps.App("second").source("cars", ps.sources.Rows(ROWS, CARS), event_time="id"),
        ("the event time must be a timestamp: step 'cars' got id: int64", "columns that would fit: ts"),
    ),
    "a sink that is a path": (
        lambda cars: ps.App("second").sink("out", cars, "out.parquet"),  # type: ignore[arg-type]
        ("not a sink: step 'out' got 'out.parquet'",),
    ),
    "a type of another library": (
        lambda cars: cars.with_columns(lane=col("lane").cast("str")),
        ("unknown type 'str'", "write 'string'"),
    ),
    "a type of Python's": (
        lambda cars: ps.sources.Rows(ROWS, {"id": int}),  # type: ignore[dict-item]
        ("unknown type <class 'int'>: for column 'id'", "write 'int64'"),
    ),
    "split": (
        lambda cars: cars.with_columns(first=col("name").split(" ")),
        ("expressions have no 'split'", "split_part(',', 1)"),
    ),
    "text methods behind str": (
        lambda cars: cars.with_columns(name=col("name").str.upper()),
        ("expressions have no 'str'", "col('name').upper()"),
    ),
    "a method that is not called, compared": (
        lambda cars: cars.filter(col("ts").hour == 8),
        ("a condition is False before any event came", "col('ts').hour() == 8"),
    ),
    "a method that is not called, in a condition": (
        lambda cars: cars.filter((col("speed") > 1) & (col("ts").hour == 8)),
        ("a condition is False before any event came", "col('ts').hour() == 8"),
    ),
    "a method that is not called, as a column": (
        lambda cars: cars.with_columns(hour=col("ts").hour),
        ("a constant cannot be a method", "call it: .hour()"),
    ),
    "is None": (
        lambda cars: cars.filter(col("speed") is not None),
        ("a condition is True before any event came", ".is_null()"),
    ),
    "equal to None": (
        lambda cars: cars.filter(col("speed") == None),  # noqa: E711
        ("a null constant needs a type", ".is_null()"),
    ),
    "and": (
        lambda cars: cars.filter(col("speed") > 1 and col("lane") > 1),
        ("an expression has no truth value", "write & for and"),
    ),
    "a lambda as a condition": (
        lambda cars: cars.filter(lambda car: car["speed"] > 1),
        ("a constant cannot be a function", "write an expression of columns"),
    ),
    "a keyword as a condition": (
        lambda cars: cars.filter(lane=1),
        ("filter needs 'predicate'", "filter(col('lane') == 1)"),
    ),
    "group_by": (lambda cars: cars.group_by("lane"), ("a stream has no 'group_by'", "key_by('lane')")),
    "withColumn": (
        lambda cars: cars.withColumn("kmh", col("speed")),
        ("a stream has no 'withColumn'", "with_columns(kmh="),
    ),
    "map": (lambda cars: cars.map(len), ("a stream has no 'map'", "flat_map(function, output={...})")),
    "show": (lambda cars: cars.show(), ("a stream has no 'show'", "app.sink('name', stream,")),
    "a slip of the pen": (
        lambda cars: cars.filtr(col("speed") > 1),
        ("a stream has no 'filtr'", "did you mean 'filter'?"),
    ),
    "a column as an attribute": (lambda cars: cars.lane, ("a stream has no 'lane'", "col('lane')")),
    "a column in brackets": (lambda cars: cars["lane"], ("a stream has no parts", "col('lane')")),
    "a process function without keys": (
        lambda cars: cars.process(ps.ProcessFunction(), output=CARS),
        ("a stream has no 'process'", ".key_by('lane')"),
    ),
    "a filter of a window": (
        lambda cars: cars.window(MINUTE).filter(col("speed") > 1),
        ("a window has no 'filter'", "before .window(...)"),
    ),
    "a window of seconds": (
        lambda cars: cars.window(tumbling(10)),  # type: ignore[arg-type]
        ("window size must be text or a timedelta", "'10s'"),
    ),
    "a window that slides by a second value": (
        lambda cars: cars.window(tumbling("10s", "5s")),  # type: ignore[misc]
        ("tumbling got too many values", "sliding('10s', every='5s')"),
    ),
    "top of a session": (
        lambda cars: cars.window(session("1m")).top(3, by="speed"),
        ("top takes no session window", "tumbling('10s')"),
    ),
    "text and plus": (
        lambda cars: cars.with_columns(text=col("name") + "!"),
        ("'+' needs two numbers", "col('name').concat(...)"),
    ),
    "a time as a float": (
        lambda cars: cars.with_columns(seconds=col("ts").cast("float64")),
        ("from and to int64 microseconds only", "write .cast('int64').cast('float64')"),
    ),
    "a time and text": (
        lambda cars: cars.filter(col("ts") > "2026-01-31"),
        ("types do not fit together", "datetime(2026, 1, 31)"),
    ),
    "a time and a float": (
        lambda cars: cars.with_columns(later=col("ts") + 1.5),
        ("'+' needs two numbers", "timedelta(seconds=1)"),
    ),
    "two stars": (lambda cars: col("speed") ** 2, ("there is no ** of expressions", ".pow(2)")),
    "math.sqrt": (
        lambda cars: math.sqrt(col("speed")),
        ("has no value while the query is written", ".sqrt()"),
    ),  # type: ignore[arg-type]
    "len": (lambda cars: len(col("name")), ("has no length while", ".length()")),  # type: ignore[arg-type]
    "a function without its output": (
        lambda cars: cars.flat_map(lambda car: [car]),
        ("flat_map needs 'output'", "output={'word': 'string'"),
    ),
    "a forgotten return": (
        lambda cars: cars.flat_map(forgets_return, output={"id": "int64"}),
        ("flat_map's function returns nothing", "'forgets_return' has no return", "return []"),
    ),
    "a forgotten return of a process function": (
        lambda cars: cars.key_by("lane").process(ForgetsReturn(), output={"id": "int64"}),
        ("the process function returns nothing", "'ForgetsReturn.on_event'"),
    ),
    "a setting of another runtime": (
        lambda cars: ps.Node(policy="congestion"),  # type: ignore[call-arg]
        ("Node takes no 'policy'", "scheduling='congestion'"),
    ),
    "a runtime as text": (
        lambda cars: ps.App("second").run(on="node"),  # type: ignore[call-overload]
        ("the app has no sinks", "app.sink("),
    ),
}


@pytest.mark.parametrize("mistake", WHILE_WRITTEN)
def test_while_the_query_is_written(mistake: str) -> None:
    make, parts = WHILE_WRITTEN[mistake]
    with pytest.raises(QueryError) as caught:
        make(cars())
    text = str(caught.value)
    for part in (*parts, f"(written at {__file__}:"):
        assert part in text, text
    assert caught.value.hint, f"no hint: {text}"


@pytest.mark.parametrize("module", [ps.sources, ps.sinks])
def test_dir_lists_all_connectors_also_those_of_extras(module: Any) -> None:
    assert {*module.__all__} <= {*dir(module)}
    assert {"Mqtt", "Parquet", "Spark"} <= {*dir(module)}


@pytest.mark.parametrize(
    ("where", "name", "meant"), [(ps, "tumblin", "tumbling"), (ps.sources, "parquet", "Parquet")]
)
def test_a_name_that_a_module_does_not_have(where: Any, name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; did you mean '{meant}'"):
        getattr(where, name)


def test_a_path_that_cannot_be_written_is_told_when_it_is_written_down(tmp_path: Path) -> None:
    file = tmp_path / "results"
    file.write_text("something else")
    app = ps.App("first")
    stream = app.source("cars", ps.sources.Rows(ROWS, CARS), event_time="ts")
    for sink, why in (
        (ps.sinks.Parquet(file), "it is a file, and a folder of files is written"),
        (ps.sinks.Parquet(file / "per_lane"), f"'{file}' is a file"),
        (ps.sinks.Csv(tmp_path), "it is a folder"),
    ):
        with pytest.raises(QueryError, match="nothing can be written to") as caught:
            app.sink("out", stream, sink)
        assert why in str(caught.value)
    app.sink("out", stream, ps.sinks.Parquet(tmp_path / "new" / "per_lane"))


def test_a_function_that_raises_is_named_with_its_line_and_its_query() -> None:
    def inverse(car: dict[str, Any]) -> list[dict[str, Any]]:
        return [dict(y=1 / car["lane"])]

    app = ps.App("first")
    stream = app.source("cars", ps.sources.Rows(ROWS, CARS), event_time="ts")
    app.sink("inverses", stream.flat_map(inverse, output={"y": "float64"}), ps.sinks.Memory())
    line = inverse.__code__.co_firstlineno + 1
    with pytest.raises(PenstockError) as caught:
        app.run(on=ps.Node(workers=1))
    text = str(caught.value)
    assert "raised ZeroDivisionError: division by zero" in text
    assert f" of query 'inverses' at {__file__}:{line}, event " in text


class Remembers(ps.ProcessFunction):
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.seen = 0

    def on_event(self, event: dict[str, Any], context: ps.Context) -> list[dict[str, Any]]:
        self.seen += 1
        return []


def test_an_attribute_that_is_set_during_a_run_is_refused() -> None:
    function = Remembers(3)
    function.limit = 4  # before a run it is nobody's state
    app = ps.App("first")
    stream = app.source("cars", ps.sources.Rows(ROWS, CARS), event_time="ts")
    app.sink("out", stream.key_by("lane").process(function, output={"n": "int64"}), ps.sinks.Discard())
    with pytest.raises(PenstockError, match="'seen' is set while the run goes on: all keys would share it"):
        app.run(on=ps.Node(workers=1))
