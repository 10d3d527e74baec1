"""Filter keeps the events for which its condition is true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.columns.rows import RowSteps
from penstock.query.expr import col
from penstock.query.steps import FilterSpec
from tests.harness import Harness, layout

_IN = layout({"t": "timestamp", "x": "int64?", "s": "string"}, "t", [ORDER, LATE])
_OUT = layout({"x": "int64?", "s": "string?"}, TIME, [TIME, ORDER, SUB, LATE])
events = st.lists(
    st.fixed_dictionaries(
        {
            "t": st.integers(0, 99),
            "x": st.none() | st.integers(-3, 3),
            "s": st.sampled_from("abc"),
            ORDER: st.integers(0, 9),
            LATE: st.booleans(),
        }
    )
)


@given(events, st.integers(0, 1000), st.integers(1, 9))
def test_null_counts_as_no_and_system_columns_are_kept(
    rows: list[dict[str, object]], seed: int, block_events: int
) -> None:
    spec = FilterSpec((col("x") > 0) | (col("s") == "a"))
    harness = Harness(RowSteps, spec, [_IN], _OUT, seed=seed, block_events=block_events)
    harness.feed(rows)
    assert harness.rows() == [
        {"x": row["x"], "s": row["s"], TIME: row["t"], ORDER: row[ORDER], SUB: 0, LATE: row[LATE]}
        for row in rows
        if (row["x"] is not None and row["x"] > 0) or row["s"] == "a"  # type: ignore[operator]
    ]


@pytest.mark.parametrize(("low", "kept"), [(0, 100), (50, 50), (100, 0)])
def test_all_some_or_no_events_stay(low: int, kept: int) -> None:
    harness = Harness(RowSteps, FilterSpec(col("t") >= low), [layout({"t": "int64"})], layout({"t": "int64"}))
    harness.feed([{"t": number} for number in range(100)])
    assert harness.rows() == [{"t": number} for number in range(100 - kept, 100)]


def test_a_filter_that_nobody_reads_takes_everything() -> None:
    harness = Harness(RowSteps, FilterSpec(col("t") > 0), [layout({"t": "int64"})], None)
    harness.feed([{"t": number} for number in range(100)])
