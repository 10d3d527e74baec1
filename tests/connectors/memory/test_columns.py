from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.types import DataType, Field
from penstock.sources import Columns, Rows
from tests.connectors.drain import Drain, rows_of


def test_types_and_nulls_come_from_the_data() -> None:
    source = Columns(
        {
            "ts": np.array(["1970-01-01T00:00:01", "1969-12-31T23:59:59.999999"], "datetime64[us]"),
            "a": [1, None],
            "b": np.array([1.5, np.nan], np.float32),
            "c": ["x", "y"],
            "d": [None, True],
            "e": np.array([1, 2], np.int16),
        }
    )
    assert str(source.schema) == "Schema(ts: timestamp, a: int64?, b: float32, c: string, d: bool?, e: int32)"
    first, second = rows_of(source)
    assert first == {"ts": 1_000_000, "a": 1, "b": 1.5, "c": "x", "d": None, "e": 1}
    assert second["ts"] == -1
    assert np.isnan(second["b"])


def test_a_schema_decides_over_the_data() -> None:
    source = Columns(
        {"ts": [5], "x": np.array([3], np.int64), "more": [1]}, {"ts": "timestamp", "x": "int32?"}
    )
    assert rows_of(source) == [{"ts": 5, "x": 3}]


def test_tables_and_frames_are_taken_too() -> None:
    expected = [{"ts": 7, "lane": "a"}, {"ts": 8, "lane": None}]
    table = pa.table(
        {
            "ts": pa.chunked_array([pa.array([7], pa.timestamp("us")), pa.array([8], pa.timestamp("us"))]),
            "lane": pa.array(["a", None]).dictionary_encode(),
        }
    )
    assert rows_of(Columns(table)) == expected
    frame = pd.DataFrame({"ts": pd.to_datetime([7, 8], unit="us"), "lane": ["a", None]}, index=[4, 9])
    assert rows_of(Columns(frame)) == expected


def test_rows_are_taken_with_missing_keys_as_nulls() -> None:
    rows: list[dict[str, Any]] = [{"ts": datetime(1970, 1, 1, tzinfo=UTC), "x": 1.0}, {"ts": 3}]
    assert rows_of(Rows(rows, {"ts": "timestamp", "x": "float64?"})) == [
        {"ts": 0, "x": 1.0},
        {"ts": 3, "x": None},
    ]
    assert str(Rows(rows[:1]).schema) == "Schema(ts: timestamp, x: float64)"
    assert rows_of(Rows([], {"ts": "timestamp"})) == []


@given(st.integers(0, 20), st.integers(0, 3), st.integers(1, 4), st.lists(st.integers(1, 9), min_size=1))
def test_partitions_take_turns_and_repeat_whatever_the_cuts(
    rows: int, repeat: int, partitions: int, cuts: list[int]
) -> None:
    source = Columns({"x": np.arange(rows)}, repeat=repeat, partitions=partitions)
    for partition in range(partitions):
        got = [row["x"] for row in Drain(source, partition=partition).to_end(cuts)]
        assert got == list(range(partition, rows, partitions)) * repeat


def test_only_the_visible_columns_of_the_layout_are_written() -> None:
    source = Columns({"x": [1, 2], "y": ["a", "b"]})
    fields = [
        Field(ORDER, DataType.INT64),
        Field("y", DataType.STRING),
        Field(LATE, DataType.BOOL),
    ]
    layout, strings = Layout(fields), StringPool()
    columns = layout.allocate(2)
    columns[0][:] = 99
    columns[2][:] = True
    assert source.open(layout, strings)[0].read(columns, 0, 2) == 2
    assert columns[0].tolist() == [99, 99]
    assert [strings.text(code) for code in columns[1]] == ["a", "b"]
    assert columns[2].tolist() == [True, True]


def test_a_null_mask_is_cleared_in_a_recycled_block() -> None:
    source = Columns({"x": [1, 2]}, {"x": "int64?"})
    layout = Layout(source.schema)
    columns = layout.allocate(2)
    columns[1][:] = True
    source.open(layout, StringPool())[0].read(columns, 0, 2)
    assert columns[1].tolist() == [False, False]


def test_a_rate_holds_events_back_for_all_partitions_together() -> None:
    source = Columns({"x": np.arange(1000)}, partitions=2, rate=100)
    drain = Drain(source)
    reader = drain.reader
    assert reader.available(10) == 0
    assert reader.created_ns() is None
    assert reader.next_due_ns() == 10 + 20_000_000
    assert reader.available(10 + 1_000_000_000) == 50
    assert drain.read(500) == 50
    assert reader.created_ns() == 10 + 1_000_000_000
    assert reader.available(10 + 10**15) == 450
    assert drain.read(500) == 450
    assert reader.finished
    assert reader.next_due_ns() is None


def test_repeating_for_ever_is_unbounded() -> None:
    source = Columns({"x": [1, 2, 3]}, repeat=None)
    assert not source.bounded
    drain = Drain(source)
    assert drain.reader.available(0) > 1_000_000
    drain.read(7)
    assert [row["x"] for row in drain.rows] == [1, 2, 3, 1, 2, 3, 1]
    assert Columns({"x": pa.array([], pa.int64())}, repeat=None).bounded


@pytest.mark.parametrize(
    ("data", "schema", "message"),
    [
        ({"x": [1, None]}, {"x": "int64"}, "column 'x' has nulls.*'int64\\?'"),
        ({"x": [1], "y": [1, 2]}, None, "different lengths.*'y' has 2"),
        ({"x": [1]}, {"y": "int64"}, "column 'y' is in the schema.*columns here: x"),
        ({"x": ["a"]}, {"x": "int64"}, "column 'x' does not fit.*int64"),
        ({"x": [1, "a"]}, None, "column 'x' does not fit"),
        ({"x": [None]}, None, "cannot tell the type of column 'x'"),
        ({"x": [[1]]}, None, "column 'x' has a type that streams do not have.*list"),
        ({"x": np.array([2**40])}, {"x": "int32"}, "column 'x' does not fit"),
        ([1, 2], None, "dict of arrays"),
    ],
)
def test_data_that_does_not_fit_is_refused_at_once(data: Any, schema: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        Columns(data, schema)
