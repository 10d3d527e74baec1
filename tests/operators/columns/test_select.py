"""Select computes columns; what its expressions mean is tested with the kernels."""

from __future__ import annotations

from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.columns.rows import RowSteps
from penstock.query.expr import col, lit
from penstock.query.steps import SelectSpec
from tests.harness import Harness, layout

_IN = layout({"t": "timestamp", "x": "int32?"}, "t", [ORDER])


def test_columns_constants_and_system_columns() -> None:
    spec = SelectSpec(
        (("double", col("x") * 2), ("unread", col("x") + 1), ("name", lit("one")), ("n", lit(None, "int32")))
    )
    out = layout({"double": "int32?", "name": "string", "n": "int32?"}, TIME, [TIME, ORDER, SUB, LATE])
    harness = Harness(RowSteps, spec, [_IN], out)
    harness.feed([{"t": t, "x": None if t % 3 == 0 else t, ORDER: -t} for t in range(50)])
    assert harness.rows() == [
        {
            "double": None if t % 3 == 0 else 2 * t,
            "name": "one",
            "n": None,
            TIME: t,
            ORDER: -t,
            SUB: 0,
            LATE: False,
        }
        for t in range(50)
    ]


def test_a_value_is_brought_to_the_type_of_its_column() -> None:
    harness = Harness(RowSteps, SelectSpec((("y", col("x")),)), [_IN], layout({"y": "float64?"}))
    harness.feed([{"t": 1, "x": 7}, {"t": 2, "x": None}])
    assert harness.rows() == [{"y": 7.0}, {"y": None}]


def test_the_result_of_one_column_may_read_another_of_the_same_name() -> None:
    spec = SelectSpec((("x", col("t").cast("int64")), ("t", col("x") + 1)))
    harness = Harness(RowSteps, spec, [_IN], layout({"x": "int64", "t": "int32?"}))
    harness.feed([{"t": 5, "x": 1}])
    assert harness.rows() == [{"x": 5, "t": 2}]


def test_a_select_that_nobody_reads_takes_everything() -> None:
    harness = Harness(RowSteps, SelectSpec((("y", col("x")),)), [_IN], None)
    harness.feed([{"t": 1}] * 20)
