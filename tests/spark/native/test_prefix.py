"""The native prefix gives the events of the reference, and partial aggregates the state of the operator."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

import penstock as ps
from penstock.memory.layout import LATE, TIME
from penstock.operators.run.plan import plan
from penstock.operators.run.projections import without_plain_projections
from penstock.operators.windows.window_aggregate import WindowAggregate
from penstock.query.expr import Expr, col, least, lit, when
from penstock.query.graph import Graph, Port
from penstock.query.stream.stream import Stream
from penstock.query.types import DataType, Schema
from penstock.spark.frames.streams import FrameSource
from penstock.spark.native.lowering import named
from penstock.spark.native.partial import left_out, state_table
from penstock.spark.native.prefix import REASON, RECORD, Prefix, plan_prefix
from penstock.state.tables import HASH
from tests.graphs import graph_steps as steps
from tests.graphs.graph_data import CARS, DataShape, make_rows
from tests.graphs.graph_steps import Draw
from tests.harness import Harness
from tests.reference import Row, interpret
from tests.spark.native.native import frame

Write = Callable[[Draw, Stream], Stream]
_PLENTY = "1000000s"  # of lateness: the reference then calls nothing late, and the tests decide

# a case takes a second or so: shrinking would take hours
run_on_spark = settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


class Given(FrameSource):
    """Stands for a DataFrame with these columns."""

    def __init__(self, schema: Schema = CARS, ordered: bool = False) -> None:
        super().__init__(ordered, False)
        self._schema = schema

    @property
    def schema(self) -> Schema:
        return self._schema

    def frame(self, spark: SparkSession) -> DataFrame:
        raise NotImplementedError


def graph_of(write: Callable[[Stream], dict[str, Stream]], source: FrameSource | None = None) -> Graph:
    app = ps.App("cars")
    cars = app.source("cars", source or Given(), event_time="ts", lateness=_PLENTY)
    for name, stream in write(cars).items():
        app.sink(name, stream, ps.sinks.Memory())
    return without_plain_projections(app.graph())


def prefix_of(graph: Graph) -> Prefix:
    return plan_prefix(graph, graph["cars"], plan(graph))


def lowered_rows(lowered: DataFrame) -> list[Row]:
    """The lowered rows, times in microseconds."""
    micros = [
        fn.unix_micros(named(field.name)).alias(field.name)
        if field.dataType.typeName() == "timestamp"
        else named(field.name)
        for field in lowered.schema
    ]
    return lowered.select(micros).toArrow().to_pylist()


def counted(rows: list[Row]) -> Counter[Any]:
    return Counter(tuple((name, _plain(value)) for name, value in row.items()) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return (value, type(value))  # True is not 1


# -- random steps --------------------------------------------------------------------------------------------


def widen(draw: Draw, cars: Stream) -> Stream:
    c = draw(st.integers(0, 3))
    return cars.with_columns(
        y=col("y") * float(c) + col("x").fill_null(1.0),
        n=(col("n") + c) % 4,
        g=when(col("k") == c, lit("a")).otherwise(col("g")),
        w=least(col("w"), col("w") * 2),
    )


_RATES = {"key": pa.array([3, 1, 0], pa.int32()), "rate": pa.array([0.5, None, math.nan])}
_TIMES = {
    "k": pa.array([0, 2], pa.int64()),
    "since": pa.array([5, -7], pa.timestamp("us")),
    "flag": pa.array([True, None]),
    "small": pa.array([1.5, 2.5], pa.float32()),
}
_WORDS = {
    "g": ["a", "Bä", ""],
    "word": ["one", None, "three"],
    "until": pa.array([1, None, 3], pa.timestamp("us")),
}
_FLOATS = {"x": [0.0, math.nan, 1.5], "size": pa.array([10, 20, 30], pa.int32())}


def look_up(draw: Draw, cars: Stream) -> Stream:
    how = draw(st.sampled_from(("inner", "left")))
    table, on = draw(
        st.sampled_from(((_RATES, {"k": "key"}), (_TIMES, {"k": "k"}), (_WORDS, "g"), (_FLOATS, "x")))
    )
    return cars.lookup(table, on=on, how=how)


def chain(draw: Draw, cars: Stream) -> Stream:
    used: set[Any] = set()
    for _ in range(draw(st.integers(0, 4))):
        step = draw(st.sampled_from((steps.filter_cars, widen, steps.move_time, look_up)))
        if step is look_up and look_up in used:  # the same columns cannot be added twice
            continue
        used.add(step)
        cars = step(draw, cars)
    return cars


def aggregated(draw: Draw, cars: Stream) -> Stream:
    keys = draw(st.sampled_from(((), ("g", "f"), ("x",), ("w", "ts"))))  # few: each is a kernel to compile
    keyed = cars.key_by(*keys) if keys else cars
    return keyed.window(steps.windows(draw, sessions=False)).agg(
        events=ps.count(),
        seen=ps.count("x"),
        total=ps.sum_("n"),
        whole=ps.sum_(col("k") * 2),
        low=ps.min_("w"),
        high=ps.max_("y"),
        least=ps.min_("n"),
        most=ps.max_("k"),
        mean=ps.avg("n"),
        mean_k=ps.avg("k"),
        again=ps.count(),
        opening=ps.min_("ts"),
        closing=ps.max_(when(col("f"), col("ts"))),
    )


shapes = st.builds(
    DataShape,
    schema=st.just(CARS),
    rows=st.integers(1, 200).map(lambda count: (count,)),
    seed=st.integers(0, 2**16),
    start_us=st.sampled_from((0, -60, 1_700_000_000_000_000)),
    lateness_us=st.just(4),
    disorder=st.just(0.4),
    late=st.just(0.1),
    nulls=st.sampled_from((0.0, 0.25)),
    odd_values=st.booleans(),
)


@st.composite
def cases(draw: Any, write: Write) -> tuple[Graph, list[Row], int | None]:
    """A graph, its rows, and the watermark when they come."""
    (rows,) = make_rows(draw(shapes))
    graph = graph_of(lambda cars: {"out": write(draw, cars)}, Given(ordered=draw(st.booleans())))
    watermark = draw(st.none() | st.sampled_from(sorted(row["ts"] for row in rows)))
    return graph, rows, watermark


# -- the rule ------------------------------------------------------------------------------------------------


@run_on_spark
@given(case=cases(chain))
def test_lowered_rows_are_the_events_of_the_reference(
    spark: SparkSession, case: tuple[Graph, list[Row], int | None]
) -> None:
    graph, rows, watermark = case
    prefix = prefix_of(graph)
    lowered = prefix.apply(prefix.prune(frame(spark, rows, CARS)), watermark)
    got = lowered_rows(lowered)
    assert lowered.columns == list(prefix.columns)
    expected = []
    for event in interpret(graph, {"cars": [rows]}).outputs[prefix.at.node, Port.MAIN]:
        system = {TIME: event.time, LATE: watermark is not None and event.time < watermark}
        expected.append({name: (event.row | system)[name] for name in prefix.columns})
    assert counted(got) == counted(expected), prefix.done


@run_on_spark
@given(case=cases(lambda draw, cars: aggregated(draw, chain(draw, cars))))
def test_partial_aggregates_are_what_the_operator_would_have_made(
    spark: SparkSession, case: tuple[Graph, list[Row], int | None]
) -> None:
    graph, rows, watermark = case
    prefix, layouts = prefix_of(graph), plan(graph)
    assert prefix.partial is not None
    node = graph[prefix.partial.node]
    source = layouts.inputs(node)[0]
    lowered = prefix.apply(prefix.prune(frame(spark, rows, CARS)), watermark)
    table, late, bad = left_out(lowered.toArrow())
    events = interpret(graph, {"cars": [rows]}).outputs[prefix.at.node, Port.MAIN]
    if LATE in source and watermark is not None:
        on_time = [event for event in events if event.time >= watermark]
    else:
        on_time = events
    assert (late, bad) == (len(events) - len(on_time), 0)

    consumed, merged = (
        Harness(WindowAggregate, node.spec, [source], layouts.outputs(node)[Port.MAIN]) for _ in "ab"
    )
    consumed.feed([{**event.row, TIME: event.time, LATE: False} for event in on_time])
    groups = state_table(table, merged.operator.state_formats[0].schema)
    kept = consumed.operator.export_state().get("groups")
    unhashed = [] if kept is None else kept.drop_columns([HASH]).to_pylist()
    assert counted(groups.drop_columns([HASH]).to_pylist()) == counted(unhashed)
    merged.operator.merge_state({"groups": groups})
    consumed.end()
    merged.end()
    assert counted(merged.rows()) == counted(consumed.rows())


# -- what is done natively, and what is not ------------------------------------------------------------------


def per_k(cars: Stream, **aggregates: Any) -> Stream:
    return cars.key_by("k").window(ps.tumbling("10us")).agg(**aggregates)


def done(write: Callable[[Stream], Stream]) -> tuple[list[str], str | None]:
    """The kinds of steps that Spark does, and of the step it aggregates for."""
    graph = graph_of(lambda cars: {"out": write(cars)})
    prefix = prefix_of(graph)
    partial = None if prefix.partial is None else graph[prefix.partial.node].kind
    return [graph[name].kind for name in prefix.done], partial


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda cars: cars, ([], None)),
        (lambda cars: cars.filter(col("k") > 1), (["filter"], None)),
        (lambda cars: cars.filter(col("g").lower() == "a"), ([], None)),
        (lambda cars: cars.filter(col("k") > 1).select(g=col("g").lower()), (["filter"], None)),
        (lambda cars: cars.lookup(_RATES, on={"k": "key"}), (["lookup"], None)),
        # a join in every batch pays only where few rows go on
        (lambda cars: cars.filter(col("k") > 1).lookup(_WORDS, on="g"), (["filter"], None)),
        (lambda cars: per_k(cars.lookup(_WORDS, on="g"), n=ps.count()), (["lookup"], "agg")),
        (lambda cars: per_k(cars, n=ps.sum_("n")), ([], "agg")),
        (lambda cars: per_k(cars, n=ps.sum_("x")), ([], None)),  # Spark's sums of floats lose something
        (lambda cars: per_k(cars, n=ps.count(), mean=ps.avg("w")), ([], None)),
        (lambda cars: per_k(cars, n=ps.first("k")), ([], None)),
        (lambda cars: per_k(cars, n=ps.count()).late(), ([], None)),
        (lambda cars: cars.key_by("k").window(ps.session("5us")).agg(n=ps.count()), ([], None)),
        # what nobody reads need not be native
        (lambda cars: per_k(cars, n=ps.count(), x=ps.sum_("x")).select("k", "n"), ([], "agg")),
        (lambda cars: cars.explode([{"a": col("k")}, {"a": col("id")}]).filter(col("a") > 1), ([], None)),
    ],
)
def test_what_spark_does(write: Callable[[Stream], Stream], expected: tuple[list[str], str | None]) -> None:
    assert done(write) == expected


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize(
    ("table", "on", "taken"),
    [
        (_RATES, {"k": "key"}, "rate"),
        (_TIMES, "k", "since"),
        (_TIMES, "k", "flag"),
        (_TIMES, "k", "small"),
        (_WORDS, "g", "word"),
        (_WORDS, "g", "until"),
        (_FLOATS, "x", "size"),
    ],
)
def test_lookups_find_what_the_reference_finds(
    spark: SparkSession, table: dict[str, Any], on: Any, taken: str, how: str
) -> None:
    (rows,) = make_rows(DataShape(CARS, (80,), 5, -60, 0, 0.0, 0.0, 0.2, True))
    window = ps.tumbling("1h")
    graph = graph_of(
        lambda cars: {
            "out": cars.lookup(table, on=on, how=how).key_by(taken).window(window).agg(n=ps.count())
        }
    )
    prefix = prefix_of(graph)
    assert [graph[name].kind for name in prefix.done] == ["lookup"]
    got = lowered_rows(prefix.apply(prefix.prune(frame(spark, rows, CARS))))
    found = Counter({(row["$pane"], _plain(row[f"$key.{taken}"])): row["$n.0"] for row in got})
    events = interpret(graph, {"cars": [rows]}).outputs[prefix.at.node, Port.MAIN]
    assert found == Counter((event.time // 3_600_000_000, _plain(event.row[taken])) for event in events)


def test_only_columns_that_are_read_are_kept(spark: SparkSession) -> None:
    graph = graph_of(lambda cars: {"out": per_k(cars.filter(col("f")), n=ps.sum_("n"))})
    prefix = prefix_of(graph)
    assert prefix.prune(frame(spark, [], CARS)).columns == ["ts", "k", "n", "f"]


def test_a_select_of_constants_keeps_the_number_of_events(spark: SparkSession) -> None:
    (rows,) = make_rows(DataShape(CARS, (9,), 0, 0, 0, 0.0, 0.0, 0.0, False))
    prefix = prefix_of(graph_of(lambda cars: {"out": cars.select(one=lit(1))}))
    assert lowered_rows(prefix.apply(prefix.prune(frame(spark, rows, CARS)))) == [{"one": 1}] * 9


def test_what_no_query_keeps_is_left_out_before_python(spark: SparkSession) -> None:
    (rows,) = make_rows(DataShape(CARS, (80,), 1, 0, 0, 0.0, 0.0, 0.2, False))
    conditions: list[Expr] = [col("k") == 1, (col("k") == 3) & (col("x") > 1.0), col("x") > 7.0]
    graph = graph_of(lambda cars: {f"q{i}": cars.filter(c) for i, c in enumerate(conditions)})
    prefix = prefix_of(graph)
    assert prefix.done == ()
    kept = {row["id"] for row in lowered_rows(prefix.apply(prefix.prune(frame(spark, rows, CARS))))}
    events = [interpret(graph, {"cars": [rows]}).sinks[f"q{i}"] for i in range(3)]
    assert kept == {row["id"] for query in events for row in query}
    assert 0 < len(kept) < 80


def test_many_or_other_readers_get_everything() -> None:
    many = graph_of(lambda cars: {f"q{k}": cars.filter(col("id") == k) for k in range(17)})
    other = graph_of(lambda cars: {"a": cars.filter(col("k") > 1), "b": per_k(cars, n=ps.count())})
    hard = graph_of(lambda cars: {"a": cars.filter(col("k") > 1), "b": cars.filter(col("g").lower() == "a")})
    assert [prefix_of(graph).alternatives for graph in (many, other, hard)] == [(), (), ()]


# -- bad records ---------------------------------------------------------------------------------------------

_FILES = Schema(ts="timestamp?", speed="float64", note="string?")


class Records(Given):
    """Stands for records of files, in which anything can be null."""

    def checked(self, event_time: str) -> tuple[str, ...]:
        return tuple(field.name for field in self.timed_by(event_time) if not field.nullable)


def test_records_with_a_null_where_none_may_be_are_set_aside_and_counted(spark: SparkSession) -> None:
    app = ps.App("cars")
    cars = app.source("cars", Records(_FILES), event_time="ts")
    assert not cars.schema["ts"].nullable
    app.sink("out", cars.filter(col("speed") > 1.0).select("ts", "speed"), ps.sinks.Memory())
    app.sink("bad", cars.bad_records(), ps.sinks.Memory())
    prefix = prefix_of(without_plain_projections(app.graph()))
    nullable = Schema(
        field if field.nullable else type(field)(field.name, field.dtype, True) for field in _FILES
    )
    rows = [
        {"ts": 5, "speed": 2.0, "note": None},
        {"ts": None, "speed": 2.0, "note": "no time"},
        {"ts": 90, "speed": None, "note": "no speed"},
        {"ts": 7, "speed": 0.5, "note": "slow"},
    ]
    batch = prefix.prune(frame(spark, rows, nullable).coalesce(1))
    assert lowered_rows(prefix.apply(batch)) == [{"ts": 5, "speed": 2.0}]
    told = [(row[REASON], row[RECORD]) for row in batch.collect()]
    assert told == [
        (None, None),
        ("column 'ts' is null", '{"speed":2.0,"note":"no time"}'),
        ("column 'speed' is null", '{"ts":"1970-01-01T00:00:00.000Z","note":"no speed"}'),
        (None, None),
    ]


def test_bad_records_and_late_events_are_counted_beside_the_groups(spark: SparkSession) -> None:
    app = ps.App("cars")
    cars = app.source("cars", Records(Schema(ts="timestamp?", k="int32?")), event_time="ts", lateness="1s")
    app.sink("out", cars.key_by("k").window(ps.tumbling("10us")).agg(n=ps.count()), ps.sinks.Memory())
    prefix = prefix_of(without_plain_projections(app.graph()))
    rows = [{"ts": time, "k": 1} for time in (None, 3, 12, 14, None, 27)]
    batch = prefix.prune(frame(spark, rows, Schema(ts="timestamp?", k="int32?")))
    assert batch.columns == ["ts", "k"]
    groups, late, bad = left_out(prefix.apply(batch, 13).toArrow())
    assert (late, bad) == (2, 2)
    assert sorted((row["$pane"], row["$n.0"]) for row in groups.to_pylist()) == [(1, 1), (2, 1)]


def test_a_new_watermark_needs_no_new_java_code(spark: SparkSession) -> None:
    app = ps.App("cars")
    schema = Schema(ts="timestamp?", k="int32?")
    cars = app.source("cars", Records(schema), event_time="ts", lateness="1s")
    app.sink("out", cars.key_by("k").window(ps.tumbling("10us")).agg(n=ps.count()), ps.sinks.Memory())
    prefix = prefix_of(without_plain_projections(app.graph()))
    events = frame(spark, [{"ts": time, "k": 1} for time in (-7, 3, 12)], schema)
    batch = prefix.prune(events).repartition(1)  # else Spark computes it all while it plans
    assert spark._jvm is not None
    compilations = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    late, compiled = [], []
    for watermark_us in (-3, 5, 13):
        late.append(left_out(prefix.apply(batch, watermark_us).toArrow())[1])
        compiled.append(compilations.getCount())
    assert late == [1, 2, 3]
    assert compiled[1:] == compiled[:-1]


def test_nothing_is_checked_where_nothing_can_be_null(spark: SparkSession) -> None:
    graph = graph_of(lambda cars: {"out": cars.select("id", "k")})
    assert prefix_of(graph).prune(frame(spark, [], CARS)).columns == ["ts", "id", "k"]


def test_types_that_lookups_add_are_ours(spark: SparkSession) -> None:
    graph = graph_of(
        lambda cars: {"out": cars.lookup(_TIMES, on="k", how="left").select("id", "since", "flag", "small")}
    )
    prefix = prefix_of(graph)
    lowered = prefix.apply(prefix.prune(frame(spark, [], CARS)))
    kinds = {field.name: field.dataType.simpleString() for field in lowered.schema}
    assert kinds["since"] == "timestamp"
    assert kinds["flag"] == "boolean"
    assert kinds["small"] == "float"
    assert prefix.layout.field("since").dtype is DataType.TIMESTAMP
