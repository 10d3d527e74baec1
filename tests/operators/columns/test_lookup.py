"""Lookup joins events with the rows of a static table."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.layout import ORDER, TIME
from penstock.operators.columns.rows import RowSteps
from penstock.operators.columns.table_index import DirectIndex, HashIndex, index_of
from penstock.query.errors import QueryError
from penstock.query.steps import LookupSpec
from tests.harness import Harness, layout

_IN = layout({"t": "timestamp", "ad": "int64?"}, "t", [ORDER])
_OUT = layout({"ad": "int64?", "campaign": "string?", "weight": "float64?"}, TIME, [TIME, ORDER])


def run(
    table: dict[str, Any], left: bool, rows: list[dict[str, Any]], key: str = "int64?", **options: Any
) -> list[dict[str, Any]]:
    spec = LookupSpec(pa.table(table), (("k", "id"),), (("v", "value"),), left)
    harness = Harness(RowSteps, spec, [layout({"k": key})], layout({"k": key, "v": "int64?"}), **options)
    harness.feed(rows)
    return harness.rows()


@given(
    st.dictionaries(
        st.integers(0, 30) | st.integers(-(2**63), 2**63 - 1), st.none() | st.sampled_from("xyz")
    ),
    st.lists(st.none() | st.integers(-5, 35) | st.sampled_from([2**63 - 1, -(2**63)]), max_size=80),
    st.booleans(),
    st.integers(0, 99),
)
def test_inner_and_left_with_dense_and_sparse_keys(
    table: dict[int, str | None], keys: list[int | None], left: bool, seed: int
) -> None:
    found = pa.table(
        {
            "id": pa.array(table.keys(), pa.int64()),
            "name": pa.array(table.values(), pa.string()),
            "w": pa.array([float(len(table))] * len(table), pa.float64()),
        }
    )
    spec = LookupSpec(found, (("ad", "id"),), (("campaign", "name"), ("weight", "w")), left)
    harness = Harness(RowSteps, spec, [_IN], _OUT, seed=seed)
    harness.feed([{"t": index, "ad": key, ORDER: index} for index, key in enumerate(keys)])
    expected = []
    for index, key in enumerate(keys):
        match = key is not None and key in table
        if match or left:
            name = table[key] if match else None  # type: ignore[index]
            weight = float(len(table)) if match else None
            expected.append({"ad": key, "campaign": name, "weight": weight, TIME: index, ORDER: index})
    assert harness.rows() == expected


@given(
    st.sets(st.tuples(st.sampled_from("abc"), st.integers(-2, 2), st.booleans())),
    st.lists(st.tuples(st.none() | st.sampled_from("abcd"), st.integers(-3, 3), st.none() | st.booleans())),
)
def test_keys_of_several_columns(
    table: set[tuple[str, int, bool]], events: list[tuple[str | None, int, bool | None]]
) -> None:
    keys = sorted(table)
    columns = list(zip(*keys, strict=True)) or [(), (), ()]
    found = pa.table(
        {
            "a": pa.array(columns[0], pa.string()),
            "b": pa.array(columns[1], pa.int32()),
            "c": pa.array(columns[2], pa.bool_()),
            "n": pa.array(range(len(keys)), pa.int32()),
        }
    )
    spec = LookupSpec(found, (("s", "a"), ("x", "b"), ("p", "c")), (("n", "n"),), False)
    source = layout({"s": "string?", "x": "int64", "p": "bool?"})
    harness = Harness(RowSteps, spec, [source], layout({"n": "int32"}))
    harness.feed([{"s": s, "x": x, "p": p} for s, x, p in events])
    assert harness.rows() == [{"n": keys.index(event)} for event in events if event in table]  # type: ignore[arg-type]


def test_nan_and_both_zeros_are_keys() -> None:
    table = {"id": [math.nan, 0.0, 1.5], "value": [1, 2, 3]}
    rows = run(table, False, [{"k": k} for k in (-0.0, math.nan, 1.5, 2.5, None)], key="float64?")
    assert [row["v"] for row in rows] == [2, 1, 3]


def test_float32_keys() -> None:
    table = {"id": pa.array([0.1, -1.0], pa.float32()), "value": [1, 2]}
    rows = run(table, False, [{"k": k} for k in (0.1, -1.0, 0.2)], key="float32?")
    assert [row["v"] for row in rows] == [1, 2]


def test_a_null_key_of_the_table_matches_nothing() -> None:
    table = {"id": pa.array([None, None, 1], pa.int64()), "value": [1, 2, 3]}
    assert [row["v"] for row in run(table, True, [{"k": None}, {"k": 1}, {"k": 0}])] == [None, 3, None]


def test_strings_seen_only_after_the_table_was_built() -> None:
    rows = run(
        {"id": ["a", "b"], "value": [1, 2]}, True, [{"k": k} for k in ("b", "new", "a")], key="string?"
    )
    assert rows == [{"k": "b", "v": 2}, {"k": "new", "v": None}, {"k": "a", "v": 1}]


@pytest.mark.parametrize("keys", [[1, 2, 1], [1, 2**60, 1]])
def test_a_key_that_occurs_twice_is_refused(keys: list[int]) -> None:
    with pytest.raises(QueryError, match=r"more than once: step 'step' row .*; a lookup gives one row"):
        run({"id": keys, "value": [1, 2, 3]}, False, [])


def test_key_types_that_differ_are_refused() -> None:
    with pytest.raises(QueryError, match=r"'k' of the stream is int64, 'id' of the table is string"):
        run({"id": ["1"], "value": [1]}, False, [])


def test_a_dense_range_is_indexed_directly_and_a_sparse_one_by_hash() -> None:
    import numpy as np

    usable = np.ones(3, np.bool_)
    assert isinstance(index_of([np.array([5, 7, 1000])], usable), DirectIndex)
    assert isinstance(index_of([np.array([5, 7, 2**40])], usable), HashIndex)
    assert isinstance(index_of([np.array([-(2**63), 7, 2**63 - 1])], usable), HashIndex)


def test_a_lookup_that_nobody_reads_takes_everything() -> None:
    spec = LookupSpec(pa.table({"id": [1], "value": [1]}), (("k", "id"),), (("v", "value"),), False)
    Harness(RowSteps, spec, [layout({"k": "int64"})], None).feed([{"k": 1}] * 20)
