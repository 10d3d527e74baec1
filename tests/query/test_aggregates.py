"""Aggregates: their types and what they refuse."""

from __future__ import annotations

import pytest

from penstock.query.aggregates import (
    Aggregate,
    arg_max,
    arg_min,
    avg,
    collect_list,
    count,
    count_distinct,
    first,
    last,
    max_,
    median,
    min_,
    quantile,
    stddev,
    sum_,
    variance,
)
from penstock.query.expr import col
from penstock.query.types import Schema
from tests.query.stream.streams import fails

SCHEMA = Schema(i="int32", f="float32", t="timestamp", s="string", b="bool", n="int64?", sn="string?")


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (count(), "int64"),
        (count("sn"), "int64"),
        (count_distinct("sn"), "int64"),
        (sum_("i"), "int64"),
        (sum_("f"), "float64"),
        (sum_("n"), "int64?"),
        (min_("i"), "int32"),
        (max_("f"), "float32"),
        (max_("n"), "int64?"),
        (min_("t"), "timestamp"),
        (avg("i"), "float64"),
        (avg("n"), "float64?"),
        (variance("i"), "float64?"),
        (stddev("i"), "float64?"),
        (first("s"), "string"),
        (last("sn"), "string?"),
        (first("b"), "bool"),
        (quantile("i", 0.9), "float64"),
        (median("n"), "float64?"),
        (sum_(col("i") / 2), "float64?"),
        (sum_(1), "int64"),
        (sum_("i", where=col("b")), "int64?"),
        (count(where=col("n") > 1), "int64"),
        (count("b"), "int64"),
        (collect_list("t", 5), "string"),
        (collect_list("sn", 5), "string?"),
        (arg_max("s", "n"), "string?"),
        (arg_min("b", "t"), "bool"),
    ],
)
def test_result_types(aggregate: Aggregate, expected: str) -> None:
    typed = aggregate.result_type(SCHEMA)
    assert typed.dtype.value + ("?" if typed.nullable else "") == expected


def test_they_read_as_they_are_written() -> None:
    assert repr(count()) == "count()"
    assert repr(avg("i")) == "avg(i)"
    assert repr(avg("i", where=col("b"))) == "avg(i, where=b)"
    assert repr(quantile(col("i") * 2, 0.9)) == "quantile((i * 2), 0.9)"


def test_keys_tell_parameters_apart() -> None:
    assert quantile("i", 0.5).key() == median("i").key()
    assert quantile("i", 0.5).key() != quantile("i", 0.9).key()
    assert count().key() != count("i").key()
    assert count().key() != count(where=col("b")).key() != count(where=~col("b")).key()
    assert sum_("i").key() != avg("i").key()


def test_order_and_nothing() -> None:
    assert first("i").function.in_order
    assert not sum_("i").function.in_order
    assert count("i").function.of_none == 0
    assert max_("i").function.of_none is None


@pytest.mark.parametrize("make", [sum_, avg, variance, median])
@pytest.mark.parametrize("column", ["s", "t", "b"])
def test_arithmetic_needs_numbers(make: type, column: str) -> None:
    fails(
        lambda: make(column).result_type(SCHEMA),
        "needs a number",
        f"got {column} of type",
        "count_distinct()",
    )


def test_errors() -> None:
    fails(lambda: min_("s").result_type(SCHEMA), "min needs a number or a timestamp")
    fails(lambda: max_("b").result_type(SCHEMA), "max needs a number or a timestamp")
    fails(lambda: count(col("i") > 3).result_type(SCHEMA), "count of a condition", "count(where=(i > 3))")
    fails(lambda: count(where=col("i")).result_type(SCHEMA), "where of count needs a condition", "type int32")
    fails(
        lambda: arg_max("i", "s").result_type(SCHEMA),
        "arg_max needs a number or a timestamp",
        "got s of type",
    )
    fails(lambda: collect_list("i", 0), "collect_list needs a limit of at least 1", "got 0")
    fails(lambda: avg("x").result_type(SCHEMA), "unknown column 'x'")
    fails(lambda: quantile("i", 1.5), "between 0 and 1", "got 1.5")
    fails(lambda: quantile("i", "0.5"), "between 0 and 1", "got '0.5'")  # type: ignore[arg-type]
    fails(lambda: avg(None), "a null constant needs a type")  # type: ignore[arg-type]
