"""Union copies the events of every input."""

from __future__ import annotations

from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.columns.union import Union
from penstock.query.steps import UnionSpec
from tests.harness import Harness, layout

_OUT = layout({"x": "int64?", "s": "string"}, TIME, [TIME, ORDER, SUB, LATE])


def test_nullable_and_not_with_and_without_system_columns() -> None:
    plain = layout({"t": "timestamp", "x": "int64", "s": "string"}, "t", [ORDER])
    full = layout({"s": "string", "x": "int64?"}, TIME, [TIME, ORDER, SUB, LATE])
    harness = Harness(Union, UnionSpec(), [plain, full], _OUT, block_events=4)
    left = [{"t": t, "x": t, "s": "left", ORDER: t} for t in range(30)]
    right = [
        {"s": "right", "x": None if t % 2 else t, TIME: t, ORDER: -t, SUB: t, LATE: t > 20} for t in range(30)
    ]
    for start in range(0, 30, 10):
        harness.feed(left[start : start + 10], 0)
        harness.feed(right[start : start + 10], 1)
    rows = harness.rows()
    assert [row for row in rows if row["s"] == "right"] == [{**row, SUB: 2 * row[SUB] + 1} for row in right]
    assert [row for row in rows if row["s"] == "left"] == [
        {"x": t, "s": "left", TIME: t, ORDER: t, SUB: 0, LATE: False} for t in range(30)
    ]


def test_a_mask_left_by_an_earlier_event_in_the_block_is_overwritten() -> None:
    nulls, plain = layout({"x": "int64?"}), layout({"x": "int64"})
    harness = Harness(Union, UnionSpec(), [nulls, plain], layout({"x": "int64?"}), block_events=3)
    for _ in range(10):
        harness.feed([{"x": None}] * 5, 0)
        harness.feed([{"x": 1}] * 5, 1)
    assert harness.rows() == ([{"x": None}] * 5 + [{"x": 1}] * 5) * 10


def test_a_union_that_nobody_reads_takes_everything() -> None:
    Harness(Union, UnionSpec(), [layout({"x": "int64"})], None).feed([{"x": 1}] * 20)
