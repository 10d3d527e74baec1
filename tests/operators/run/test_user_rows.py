"""Rows for user functions: what Python values columns become, and which values columns take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.strings import StringPool
from penstock.operators.run.rows import RowReader, converter, hash_key, start_value, sub_of
from penstock.query.types import DataType, Field
from tests.harness import columns_of, layout
from tests.reference_aggregates import wrapped, xxhash64

NAN = float("nan")
VALUES = {
    DataType.BOOL: st.booleans(),
    DataType.INT32: st.integers(-(2**31), 2**31 - 1),
    DataType.INT64: st.integers(-(2**63), 2**63 - 1),
    DataType.FLOAT32: st.floats(width=32),
    DataType.FLOAT64: st.floats(),
    DataType.TIMESTAMP: st.integers(-(2**63), 2**63 - 1),
    DataType.STRING: st.text(max_size=40),
}


def test_rows_are_read_as_plain_python_values() -> None:
    strings = StringPool()
    source = layout({"t": "timestamp", "b": "bool?", "f": "float32", "s": "string?"}, "t", ["$order"])
    rows = [{"t": 1, "b": True, "f": 0.5, "s": "x"}, {"t": -2, "b": None, "f": 1.5, "s": None}]
    columns = columns_of(rows, source, strings)
    reader = RowReader(source, strings)
    assert reader.read(columns, slice(0, 2)) == rows
    assert reader.read(columns, np.array([1])) == rows[1:]
    assert [type(value) for value in reader.read(columns, slice(0, 1))[0].values()] == [int, bool, float, str]


def test_equal_keys_are_equal_tuples() -> None:
    strings = StringPool()
    source = layout({"f": "float64?"})
    columns = columns_of([{"f": value} for value in (NAN, 0.0, -0.0, None, -NAN)], source, strings)
    keys = RowReader(source, strings).keys(columns, slice(0, 5))
    assert len({*keys}) == 3
    assert keys[0] == keys[4]
    assert keys[1] == keys[2]
    assert RowReader(source, strings, ()).keys(columns, slice(0, 2)) == [(), ()]


@pytest.mark.parametrize(
    ("dtype", "value", "held"),
    [
        (DataType.INT32, np.int64(7), 7),
        (DataType.FLOAT64, 3, 3.0),
        (DataType.FLOAT64, np.float32(0.5), 0.5),
        (DataType.FLOAT32, 0.1, float(np.float32(0.1))),
        (DataType.FLOAT32, 1e300, float("inf")),
        (DataType.BOOL, np.True_, True),
        (DataType.STRING, np.str_("x"), "x"),
    ],
)
def test_values_become_what_the_column_would_hold(dtype: DataType, value: Any, held: Any) -> None:
    converted = converter(Field("x", dtype))(value)
    assert converted == held
    assert type(converted) is type(held)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (DataType.BOOL, 1),
        (DataType.INT32, 1 << 31),
        (DataType.INT64, 1.0),
        (DataType.FLOAT64, False),
        (DataType.FLOAT64, 10**400),
        (DataType.STRING, b"x"),
        (DataType.STRING, None),
    ],
)
def test_values_that_do_not_fit_are_refused(dtype: DataType, value: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        converter(Field("x", dtype))(value)


@pytest.mark.parametrize("dtype", DataType)
def test_the_start_value_fits_and_null_fits_where_allowed(dtype: DataType) -> None:
    start = start_value(Field("x", dtype))
    assert converter(Field("x", dtype))(start) == start
    assert start_value(Field("x", dtype, True)) is None
    assert converter(Field("x", dtype, True))(None) is None


@given(
    st.lists(st.sampled_from(list(DataType)).flatmap(lambda t: st.tuples(st.none() | VALUES[t], st.just(t))))
)
def test_the_hash_of_a_key_is_that_of_the_reference(typed: list[tuple[Any, DataType]]) -> None:
    assert hash_key(tuple(value for value, _ in typed), [dtype for _, dtype in typed]) == xxhash64(typed)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**20))
def test_the_place_among_rows_of_one_event_wraps(sub: int, index: int) -> None:
    assert sub_of(sub, index) == wrapped(sub * 2**20 + index)
