"""Streams: what each step makes of the schema and of the event time."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.query.expr import coalesce, col, lit
from penstock.query.graph import Port
from penstock.query.steps import BatchSpec, ExplodeSpec, FilterSpec, FlatMapSpec, SelectSpec, UnionSpec
from penstock.query.stream.keyed import KeyedStream
from penstock.query.stream.stream import Stream
from penstock.query.types import Schema
from penstock.query.windows import tumbling
from tests.query.stream.streams import CARS, DeclaredSource, Traffic, fails


@pytest.fixture
def traffic() -> Traffic:
    return Traffic()


@pytest.fixture
def cars(traffic: Traffic) -> Stream:
    return traffic.cars


def test_a_source_is_a_stream_with_its_event_time(cars: Stream) -> None:
    assert cars.schema == CARS
    assert cars.time_column == "ts"
    assert repr(cars) == "<Stream cars: ts: timestamp, id: int64, lane: int32, speed: float64?>"


def test_filter_keeps_everything(cars: Stream) -> None:
    fast = cars.filter(col("speed") > 30)
    assert fast.schema == CARS
    assert fast.time_column == "ts"
    assert isinstance(fast._feed.step.spec, FilterSpec)
    assert cars.filter(lit(True)).schema == CARS


def test_select_chooses_computes_and_orders(cars: Stream) -> None:
    chosen = cars.select("speed", "ts", {"name": col("id") + 1}, kmh=col("speed") * 3.6, one=1)
    assert chosen.schema == Schema(
        speed="float64?", ts="timestamp", name="int64", kmh="float64?", one="int64"
    )
    assert chosen.time_column == "ts"
    assert cars.select(col("lane")).schema == Schema(lane="int32")


def test_the_event_time_follows_a_renamed_column(cars: Stream) -> None:
    assert cars.select("lane").time_column is None
    assert cars.select(when=col("ts")).time_column == "when"
    assert cars.select("ts", again=col("ts")).time_column == "ts"
    assert cars.select(again=col("ts"), ts=col("ts")).time_column == "ts"
    assert cars.select(ts=col("ts") + 0).time_column is None
    assert cars.rename(ts="when").time_column == "when"
    assert cars.drop("lane").time_column == "ts"
    assert cars.drop("ts").time_column is None
    assert cars.with_columns(x=1).time_column == "ts"
    assert cars.with_columns(ts=col("ts") + 1).time_column is None
    assert cars.with_columns(ts=col("ts") + 1, was=col("ts")).time_column == "was"
    assert cars.select("lane").with_columns(ts=lit(0, "timestamp")).time_column is None


def test_with_columns_replaces_in_place_and_adds_at_the_end(cars: Stream) -> None:
    more = cars.with_columns({"name": lit("x")}, speed=coalesce(col("speed"), 0.0), fast=col("speed") > 30)
    assert more.schema == Schema(
        ts="timestamp", id="int64", lane="int32", speed="float64", name="string", fast="bool?"
    )


def test_with_columns_reads_the_old_values(cars: Stream) -> None:
    swapped = cars.select("lane", "id").with_columns(lane=col("id"), id=col("lane"))
    assert swapped.schema == Schema(lane="int64", id="int32")


def test_drop_and_rename(cars: Stream) -> None:
    assert cars.drop("ts", "speed").schema == Schema(id="int64", lane="int32")
    assert cars.rename(lane="track").schema.names == ("ts", "id", "track", "speed")
    assert cars.rename(lane="id", id="lane").schema.names == ("ts", "lane", "id", "speed")
    assert cars.rename({"lane": "name"}).rename({"name": "lane"}).schema == CARS
    assert isinstance(cars.drop("ts")._feed.step.spec, SelectSpec)


def test_explode_makes_rows_of_common_types(cars: Stream) -> None:
    rows = [dict(what=lit("lane"), value=col("lane")), dict(value=col("speed"), what=lit("speed"))]
    made = cars.explode(rows, where=[None, col("speed").is_not_null()], keep=("ts", "id"))
    assert made.schema == Schema(ts="timestamp", id="int64", what="string", value="float64?")
    assert made.time_column == "ts"
    spec = made._feed.step.spec
    assert isinstance(spec, ExplodeSpec)
    assert [[name for name, _ in row] for row in spec.rows] == [["ts", "id", "what", "value"]] * 2
    assert spec.conditions[0] is None


def test_explode_and_the_event_time(cars: Stream) -> None:
    both = [dict(when=col("ts")), dict(when=col("ts"))]
    assert cars.explode(both).time_column == "when"
    assert cars.explode([dict(when=col("ts")), dict(when=col("ts") + 1)]).time_column is None
    assert cars.explode([dict(x=1)], keep="id").schema == Schema(id="int64", x="int64")
    assert cars.explode([dict(x=1), dict(x=2.5)]).schema == Schema(x="float64")
    assert cars.explode([dict(x=col("lane")), dict(x=7)]).schema == Schema(x="int32")


def test_functions_declare_their_output(cars: Stream) -> None:
    def double(event: dict[str, Any]) -> list[dict[str, Any]]:
        return [event, event]

    mapped = cars.flat_map(double, output={"x": "int64?"})
    assert mapped.schema == Schema(x="int64?")
    assert mapped.time_column is None
    assert isinstance(mapped._feed.step.spec, FlatMapSpec)
    batched = cars.batch(lambda columns: columns, output=CARS, arrow=True)
    assert batched.schema == CARS
    assert batched.time_column is None
    spec = batched._feed.step.spec
    assert isinstance(spec, BatchSpec)
    assert spec.arrow


def test_union_widens_nulls_and_aligns_columns(traffic: Traffic) -> None:
    a = traffic.cars.select("ts", x=col("id"))
    b = traffic.tolls.select("ts", x=lit(None, "int64"))
    assert a.union(b).schema == Schema(ts="timestamp", x="int64?")
    assert a.union(b).time_column == "ts"
    assert b.union(a, a).schema == Schema(ts="timestamp", x="int64?")
    turned = traffic.tolls.select(x=col("car"), ts=col("ts"))
    union = a.union(turned)
    assert union.schema == a.schema
    assert isinstance(union._feed.step.spec, UnionSpec)
    assert [feed.schema.names for feed in union._feed.step.inputs] == [("ts", "x"), ("ts", "x")]


def test_union_has_an_event_time_if_all_agree(traffic: Traffic) -> None:
    a = traffic.cars.select("ts", other=col("ts"))
    b = traffic.tolls.select(ts=col("ts") + 0, other=col("ts"))
    assert b.time_column == "other"
    assert a.union(b).time_column is None
    assert a.union(a).time_column == "ts"


def test_deduplicate_keeps_everything(cars: Stream) -> None:
    once = cars.deduplicate("id", within="10m")
    assert once.schema == CARS
    assert once.time_column == "ts"
    assert cars.deduplicate("id", "lane").schema == CARS


def test_keys_are_columns(cars: Stream) -> None:
    keyed = cars.key_by("lane")
    assert isinstance(keyed, KeyedStream)
    assert keyed.keys == ("lane",)
    assert keyed._feed is cars._feed
    computed = cars.key_by("lane", fast=col("speed") > 30)
    assert computed.keys == ("lane", "fast")
    assert computed.schema.names == (*CARS.names, "fast")
    assert cars.key_by("lane").key_by("id").keys == ("id",)


def test_late_events_have_the_schema_of_the_input(traffic: Traffic) -> None:
    agg = traffic.cars.filter(col("speed") > 1).deduplicate("id")
    late = agg.late()
    assert late.schema == CARS
    assert late.time_column == "ts"
    assert late._feed.port is Port.LATE
    join = traffic.cars.join(traffic.tolls, on={"id": "car"}, window=tumbling("1m"))
    assert join.late().schema == CARS
    assert join.late("right").schema == traffic.tolls.schema
    assert join.late("right")._feed.port is Port.LATE_RIGHT
    assert late.filter(col("lane") == 1).select("id").schema == Schema(id="int64")


def test_bad_records(cars: Stream) -> None:
    bad = cars.bad_records()
    assert bad.schema == Schema(partition="int32", offset="int64", record="string", reason="string")
    assert bad.time_column is None
    assert repr(bad).startswith("<Stream cars bad: partition")


def test_a_step_may_have_a_name(cars: Stream) -> None:
    assert cars.filter(col("speed") > 30, name="fast")._feed.step.name == "fast"
    assert cars.filter(col("speed") > 30)._feed.step.name is None
    origin = cars.filter(col("speed") > 30)._feed.step.origin
    assert origin.file == __file__


def test_streams_do_not_change(cars: Stream) -> None:
    before = cars._feed
    cars.filter(col("speed") > 30)
    cars.with_columns(x=1)
    assert cars._feed is before


def test_unions_of_late_and_other_events_can_be_windowed(traffic: Traffic) -> None:
    late = traffic.cars.deduplicate("id").late()
    assert traffic.cars.union(late).deduplicate("id").schema == CARS
    fails(lambda: late.union(late).deduplicate("id"), "late events stay late", step="deduplicate")


def test_any_source_can_be_declared(traffic: Traffic) -> None:
    stream = traffic.app.source("x", DeclaredSource(Schema(a="int32", t="timestamp")), event_time="t")
    assert stream.time_column == "t"
