from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.arrow import arrow_schema, batch_from_columns, schema_from_arrow, write_batch
from penstock.memory.layout import LATE, ORDER, Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError, RunError
from penstock.query.types import DataType, Field, Schema

VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    DataType.BOOL: st.booleans(),
    DataType.INT32: st.integers(-(2**31), 2**31 - 1),
    DataType.INT64: st.integers(-(2**63), 2**63 - 1),
    DataType.FLOAT32: st.floats(width=32, allow_nan=False),
    DataType.FLOAT64: st.floats(allow_nan=False),
    DataType.TIMESTAMP: st.integers(-(2**53), 2**53),
    DataType.STRING: st.text(max_size=4),
}


@st.composite
def batches(draw: st.DrawFn) -> tuple[Schema, pa.RecordBatch]:
    kinds = draw(st.lists(st.tuples(st.sampled_from(list(DataType)), st.booleans()), min_size=1, max_size=5))
    schema = Schema(Field(f"c{i}", dtype, nullable) for i, (dtype, nullable) in enumerate(kinds))
    rows = draw(st.integers(0, 20))
    target = arrow_schema(schema)
    arrays = []
    for field in schema:
        value = VALUES[field.dtype]
        values = draw(st.lists(st.none() | value if field.nullable else value, min_size=rows, max_size=rows))
        arrays.append(pa.array(values, target.field(field.name).type))
    return schema, pa.RecordBatch.from_arrays(arrays, schema=target)


@given(batches(), st.data())
def test_a_batch_survives_the_way_into_columns_and_back(
    case: tuple[Schema, pa.RecordBatch], data: st.DataObject
) -> None:
    schema, batch = case
    offset = data.draw(st.integers(0, batch.num_rows))
    count = data.draw(st.integers(0, batch.num_rows - offset))
    start = data.draw(st.integers(0, 3))
    strings = StringPool()
    strings.code("something else")
    layout = Layout([*schema, Field(ORDER, DataType.INT64)])
    columns = layout.allocate(start + count)
    for column in columns:
        column[:] = 1  # a recycled block holds anything
    write_batch(batch, offset, count, layout, columns, start, strings)
    back = batch_from_columns(columns, start, start + count, layout, strings)
    assert back.equals(batch.slice(offset, count))
    assert back.schema == batch.schema


def test_a_batch_does_not_change_when_the_block_is_recycled() -> None:
    schema = Schema(a="int64", b="float64?", c="bool", t="timestamp")
    layout = Layout(schema)
    columns = layout.allocate(3)
    batch = batch_from_columns(columns, 0, 3, layout, StringPool())
    for column in columns:
        column[:] = 1
    assert batch.to_pydict()["a"] == [0, 0, 0]
    assert batch.to_pydict()["b"] == [0.0, 0.0, 0.0]
    assert batch.column("t").cast(pa.int64()).to_pylist() == [0, 0, 0]


def test_a_layout_without_visible_columns_keeps_the_number_of_rows() -> None:
    layout = Layout([Field(LATE, DataType.BOOL)])
    assert batch_from_columns(layout.allocate(5), 1, 4, layout, StringPool()).num_rows == 3


def read(array: pa.Array[Any], kind: str) -> list[Any]:
    layout, strings = Layout(Schema(x=kind)), StringPool()
    columns = layout.allocate(len(array))
    write_batch(pa.record_batch([array], ["x"]), 0, len(array), layout, columns, 0, strings)
    column = batch_from_columns(columns, 0, len(array), layout, strings).column(0)
    if kind.startswith("timestamp"):
        column = column.cast(pa.int64())
    return column.to_pylist()


def test_narrower_types_widen() -> None:
    assert read(pa.array([1, None], pa.int8()), "int32?") == [1, None]
    assert read(pa.array([2**32 - 1], pa.uint32()), "int64") == [2**32 - 1]
    assert read(pa.array([1.5], pa.float32()), "float64") == [1.5]
    assert read(pa.nulls(2), "string?") == [None, None]


def test_times_of_every_unit_become_microseconds_rounded_down() -> None:
    assert read(pa.array([-1, 1_999, None], pa.timestamp("ns")), "timestamp?") == [-1, 1, None]
    assert read(pa.array([2], pa.timestamp("s", tz="Europe/Paris")), "timestamp") == [2_000_000]
    assert read(pa.array([2, None], pa.timestamp("ms")), "timestamp?") == [2_000, None]
    assert read(pa.array([1], pa.date32()), "timestamp") == [86_400_000_000]
    assert read(pa.array([17], pa.int64()), "timestamp") == [17]
    with pytest.raises(RunError, match="beyond the range"):
        read(pa.array([2**60], pa.timestamp("s")), "timestamp")


def test_strings_of_every_encoding() -> None:
    words = ["a", None, "b", "a"]
    assert read(pa.array(words).dictionary_encode(), "string?") == words
    assert read(pa.array(words, pa.large_string()), "string?") == words
    assert read(pa.array(words, pa.string_view()), "string?") == words
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0]), pa.array(["a", None, "b"]))
    assert read(hidden, "string?") == words
    numbers = pa.array([5, 5, 7]).dictionary_encode()
    assert read(numbers, "int64") == [5, 5, 7]


@pytest.mark.parametrize(
    ("array", "kind", "message"),
    [
        (pa.array([1.5]), "int64", "column 'x' does not fit: it is double, the stream has int64"),
        (pa.array([1]), "int32", "it is int64"),
        (pa.array([1, None]), "int64", "null in column 'x'.*'int64\\?'"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_column(array: Any, kind: str, message: str) -> None:
    with pytest.raises(RunError, match=message):
        read(array, kind)


def test_a_missing_column_is_named() -> None:
    layout = Layout(Schema(y="int64"))
    with pytest.raises(RunError, match="column 'y' is missing"):
        write_batch(pa.record_batch({"x": [1]}), 0, 1, layout, layout.allocate(1), 0, StringPool())


def test_schemas_from_arrow() -> None:
    schema = pa.schema(
        [
            pa.field("a", pa.int16(), nullable=False),
            pa.field("b", pa.dictionary(pa.int8(), pa.string())),
            pa.field("c", pa.timestamp("ns")),
        ]
    )
    assert str(schema_from_arrow(schema)) == "Schema(a: int32, b: string?, c: timestamp?)"
    assert str(schema_from_arrow(schema, ["c"])) == "Schema(a: int32, b: string, c: timestamp?)"
    with pytest.raises(QueryError, match=r"column 'z' has a type that streams do not have.*decimal"):
        schema_from_arrow(pa.schema([("z", pa.decimal128(9, 2))]))


def test_null_places_hold_zero() -> None:
    layout = Layout(Schema(x="int64?"))
    columns = layout.allocate(2)
    columns[0][:] = 9
    write_batch(pa.record_batch({"x": [None, 4]}), 0, 2, layout, columns, 0, StringPool())
    assert columns[0].tolist() == [0, 4]
    assert np.array_equal(columns[1], [True, False])
