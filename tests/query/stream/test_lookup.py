"""Lookups: which tables fit, and how their types become the stream's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from penstock.query.expr import col
from penstock.query.steps import LookupSpec
from penstock.query.stream.stream import Stream
from penstock.query.types import Schema
from tests.query.stream.streams import CARS, Traffic, fails


@pytest.fixture
def cars() -> Stream:
    return Traffic().cars


def spec_of(stream: Stream) -> LookupSpec:
    spec = stream._feed.step.spec
    assert isinstance(spec, LookupSpec)
    return spec


ROADS: list[Any] = [
    pa.table({"lane": [1, 2], "road": ["A1", "A2"]}),
    {"lane": [1, 2], "road": ["A1", "A2"]},
    {"lane": np.array([1, 2], np.int8), "road": np.array(["A1", "A2"])},
    pd.DataFrame({"lane": [1, 2], "road": ["A1", "A2"]}, index=[7, 8]),
    pa.table({"lane": pa.chunked_array([[1], [2]]), "road": pa.array(["A1", "A2"]).dictionary_encode()}),
]


@pytest.mark.parametrize("table", ROADS)
def test_tables_of_many_kinds(cars: Stream, table: Any) -> None:
    found = cars.lookup(table, on="lane")
    assert found.schema == Schema([*CARS, *Schema(road="string")])
    assert found.time_column == "ts"
    spec = spec_of(found)
    assert spec.table.equals(pa.table({"lane": pa.array([1, 2], pa.int32()), "road": ["A1", "A2"]}))
    assert (spec.on, spec.columns, spec.left) == ((("lane", "lane"),), (("road", "road"),), False)


def test_columns_are_listed_or_renamed(cars: Stream) -> None:
    table = {"id": [1], "a": [1.5], "b": [True], "lane": [3]}
    assert cars.lookup(table, on="id", columns=["b"]).schema.names == (*CARS.names, "b")
    assert cars.lookup(table, on="id", columns="a").schema.names == (*CARS.names, "a")
    assert cars.lookup(table, on={"lane": "id"}, columns={"x": "a", "y": "id"}).schema.names[-2:] == (
        "x",
        "y",
    )
    assert spec_of(cars.lookup(table, on="id", columns=["b"])).table.column_names == ["id", "b"]
    assert cars.lookup(table, on="id", columns=[]).schema == CARS
    assert cars.lookup(table, on=["id", "lane"]).schema.names[-2:] == ("a", "b")


def test_nullability(cars: Stream) -> None:
    table = {"id": [1, 2], "a": [1, None], "b": [1, 2]}
    inner, left = cars.lookup(table, on="id"), cars.lookup(table, on="id", how="left")
    assert inner.schema["a"].nullable
    assert not inner.schema["b"].nullable
    assert left.schema["b"].nullable
    assert spec_of(left).left


def test_rows_with_a_null_key_match_nothing(cars: Stream) -> None:
    table = {"id": [1, None, None], "a": [1, 2, None]}
    found = cars.lookup(table, on="id")
    assert spec_of(found).table.num_rows == 1
    assert not found.schema["a"].nullable


def test_types_become_the_nearest_that_fit(cars: Stream) -> None:
    table = pa.table(
        {
            "id": pa.array([1], pa.uint16()),
            "u32": pa.array([1], pa.uint32()),
            "i16": pa.array([1], pa.int16()),
            "f16": pa.array([np.float16(1)], pa.float16()),
            "large": pa.array(["x"], pa.large_string()),
            "day": pa.array([date(1970, 1, 2)]),
            "ns": pa.array([1_000], pa.timestamp("ns")),
            "zone": pa.array([datetime(1970, 1, 1, tzinfo=UTC)], pa.timestamp("s", tz="Europe/Berlin")),
        }
    )
    found = cars.lookup(table, on="id")
    assert found.schema == Schema(
        [
            *CARS,
            *Schema(
                u32="int64",
                i16="int32",
                f16="float32",
                large="string",
                day="timestamp",
                ns="timestamp",
                zone="timestamp",
            ),
        ]
    )
    row = spec_of(found).table.to_pylist()[0]
    assert row["zone"] == datetime(1970, 1, 1)
    assert row["ns"] == datetime(1970, 1, 1, 0, 0, 0, 1)
    assert spec_of(found).table["id"].type == pa.int64()


def test_errors(cars: Stream) -> None:
    roads = {"lane": [1, 2], "road": ["A1", "A2"]}
    fails(
        lambda: cars.lookup(roads, on="lame"), "unknown column 'lame'", "did you mean 'lane'", step="lookup"
    )
    fails(
        lambda: cars.lookup(roads, on={"id": "lame"}),
        "unknown column 'lame' of the table",
        "did you mean 'lane'",
        step="lookup",
    )
    fails(lambda: cars.lookup(roads, on="lane", columns=["rod"]), "'rod' of the table", "did you mean 'road'")
    fails(lambda: cars.lookup(roads, on="lane", columns={"x": "rod"}), "'rod' of the table", step="lookup")
    fails(
        lambda: cars.lookup({"id": [1], "lane": [1]}, on="id"),
        "column 'lane' is in the stream already",
        "columns={'lane_looked_up': 'lane'}",
        step="lookup",
    )
    fails(lambda: cars.lookup(roads, on="lane", columns={"$x": "road"}), "'$x' is reserved", step="lookup")
    fails(
        lambda: cars.lookup({"lane": [1, 2, 1], "x": [1, 2, 3]}, on="lane"),
        "a key more than once",
        "got 2 rows with lane = 1",
        step="lookup",
    )
    fails(
        lambda: cars.lookup({"s": [0.0, -0.0], "x": [1, 2]}, on={"speed": "s"}),
        "a key more than once",
        step="lookup",
    )
    fails(
        lambda: cars.lookup({"lane": ["1"], "x": [1]}, on="lane"),
        "key types do not match",
        "'lane' of the stream is int32, 'lane' of the table is string",
        step="lookup",
    )
    fails(lambda: cars.lookup({"lane": [1.0], "x": [1]}, on="lane"), "key types do not match", step="lookup")
    fails(
        lambda: cars.lookup({"lane": [2**40], "x": [1]}, on="lane"), "key types do not match", step="lookup"
    )
    fails(lambda: cars.lookup(roads, on="lane", how="outer"), "how is 'inner' or 'left'", step="lookup")
    fails(lambda: cars.lookup(roads, on=None), "a join needs keys", "the table", step="lookup")  # type: ignore[arg-type]
    fails(lambda: cars.lookup([1, 2], on="lane"), "not a table", "got a list", step="lookup")
    fails(
        lambda: cars.lookup({"lane": [1], "x": [1, 2]}, on="lane"), "the table cannot be read", step="lookup"
    )
    fails(
        lambda: cars.lookup({"lane": [1], "x": [[1]]}, on="lane"),
        "a type that does not fit",
        "'x'",
        step="lookup",
    )
    fails(
        lambda: cars.lookup(pa.table({"lane": [1], "x": pa.array([2**63], pa.uint64())}), on="lane"),
        "a type that does not fit",
        step="lookup",
    )


def test_lookups_of_equal_tables_are_one_operator() -> None:
    traffic = Traffic()
    for index in range(3):
        table = {"lane": [1, 2], "road": ["A1", "A2" if index < 2 else "A3"]}
        traffic.sink(f"q{index}", traffic.cars.lookup(table, on="lane").filter(col("road") == "A1"))
    kinds = [node.id.split("-")[0] for node in traffic.app.graph()]
    assert kinds.count("lookup") == 2
