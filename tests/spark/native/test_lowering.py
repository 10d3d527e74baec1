"""Lowered expressions mean what the reference says, for every type, null, NaN and overflow."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.query.expr import Expr, coalesce, col, greatest, hash_of, least, lit, when
from penstock.query.functions import FUNCTIONS
from penstock.query.types import Schema
from penstock.spark.native.functions import not_native
from penstock.spark.native.lowering import lower
from tests.expression_strategies import SCHEMA, expressions, rows
from tests.spark.native.native import check, natively

# One job costs a second or so: many expressions in each, and no shrinking, because a failure names its own.
_FEW = {"phases": [Phase.explicit, Phase.generate]}


def check_lowered(spark: SparkSession, exprs: list[Expr], events: list[dict[str, Any]]) -> None:
    lowered = []
    for expr in exprs:
        if lower(expr, SCHEMA) is None:
            names = [name for name, kind in FUNCTIONS.items() if not_native(kind) is not None]
            why = [*(f"{name}(" for name in names), " as string)"]  # of a float
            assert any(word in repr(expr) for word in why), f"{expr!r} is not lowered"
        else:
            lowered.append(expr)
    check(spark, lowered, events, SCHEMA)


@settings(max_examples=4, **_FEW)
@given(st.lists(expressions(2), min_size=50, max_size=50), rows(30, 30))
def test_spark_equals_reference(spark: SparkSession, exprs: list[Expr], events: list[dict[str, Any]]) -> None:
    check_lowered(spark, exprs, events)


@pytest.mark.slow
@settings(max_examples=60, derandomize=False, **_FEW)
@given(st.lists(expressions(3), min_size=40, max_size=40), rows(60, 60))
def test_spark_equals_reference_for_many_deep_expressions(
    spark: SparkSession, exprs: list[Expr], events: list[dict[str, Any]]
) -> None:
    check_lowered(spark, exprs, events)


_NUMBERS = Schema(i="int32?", l="int64?", f="float32?", d="float64?")
_NUMBER_ROWS = [
    {"i": i, "l": j, "f": f, "d": d}
    for i in (None, 0, -7, 7, -(2**31), 2**31 - 1)
    for j in (None, 0, 3, -3, -1, -(2**63), 2**63 - 1)
    for f in (None, 0.0, -0.0, 2.5, math.nan, math.inf)
    for d in (None, 0.0, -2.5, 1e300, -1e19, math.nan, -math.inf)
][::5]  # every pair of values of two columns is still there
both_ways = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "interpreted"])


@both_ways
def test_every_operation_on_every_pair_of_types(spark: SparkSession, compiled: bool) -> None:
    pairs = [(col(a), col(b)) for a in "ilfd" for b in "ilfd"]
    exprs = [expr for a, b in pairs for expr in (a + b, a - b, a * b, a / b)]
    integers = [(col(a), col(b)) for a in "il" for b in "il"]
    exprs += [expr for a, b in integers for expr in (a // b, a % b)]
    exprs += [expr for a, b in pairs for expr in (a == b, a != b, a < b, a <= b, a > b, a >= b)]
    check(spark, exprs, _NUMBER_ROWS, _NUMBERS, compiled=compiled)


@both_ways
def test_every_function_and_cast_of_every_number(spark: SparkSession, compiled: bool) -> None:
    exprs: list[Expr] = []
    for x in map(col, "ilfd"):
        exprs += [-x, abs(x), x.floor(), x.ceil(), x.round(), x.sqrt(), x.sign(), x.is_null(), hash_of(x)]
        exprs += [x.fill_null(1), x.is_not_null()]
        exprs += [x.cast(to) for to in ("bool", "int32", "int64", "float32", "float64")]
    operands = (col("i"), col("f"), col("d"))
    exprs += [least(*operands), greatest(*operands), coalesce(*operands), hash_of(*operands, col("l"))]
    exprs += [
        least(col("l")),
        greatest(col("i"), col("l")),
        hash_of(lit(5), lit(5, "int32"), lit(None, "bool")),
    ]
    check(spark, exprs, _NUMBER_ROWS, _NUMBERS, compiled=compiled)


_EXTREMES = [0, 1, -1, 2, -2, 3, -3, 7, -7, 2**62, -(2**62), 2**62 + 5, 2**63 - 1, -(2**63), -(2**63) + 1]


def test_division_rounds_down_at_the_ends_of_the_range(spark: SparkSession) -> None:
    narrow = [v for v in _EXTREMES if abs(v) < 9] + [2**31 - 1, -(2**31), -(2**31) + 1, 2**30]
    schema = Schema(a="int64", b="int64", i="int32", j="int32")
    wide = [(a, b) for a in _EXTREMES for b in _EXTREMES]
    small = [(i, j) for i in narrow for j in narrow]
    events = [
        {"a": a, "b": b, "i": small[n % len(small)][0], "j": small[n % len(small)][1]}
        for n, (a, b) in enumerate(wide)
    ]
    a, b, i, j = (col(name) for name in "abij")
    exprs = [a // b, a % b, i // j, i % j, i // b, a % j]
    exprs += [x for n in (0, 1, -1, 10, -10, 2**62 + 1, -(2**63)) for x in (a // n, a % n, i // n, i % n)]
    exprs += [x for n in (0, 3, -3) for x in (n // a, n % a, n // i, n % i)]
    check(spark, exprs, events, schema)


def test_weak_constants_take_the_type_they_meet(spark: SparkSession) -> None:
    schema = Schema(i="int32", f="float32", d="float64")
    events = [{"i": i, "f": 1.100000023841858, "d": 0.1} for i in (0, 2**31 - 1, -(2**31))]
    i, f, d = col("i"), col("f"), col("d")
    exprs = [
        i + 1,
        i + 2**40,
        i + 0.5,
        i * (lit(2**31 - 1) + 1),
        f + 0.1,
        f * 3,
        f == 1.1,
        d == 0.1,
        f == d + 1,
    ]
    exprs += [
        f + lit(0.1, "float64"),
        f.is_in([1.1, 7, 1e300]),
        d.is_in([0.1]),
        lit(3) // 2,
        lit(7),
        lit(2.5),
    ]
    exprs += [f + (2**53 + 1), lit(1) / 3, -lit(2**63 - 1), i.is_in([2**40, 0])]
    check(spark, exprs, events, schema)


def test_round_takes_halves_away_from_zero(spark: SparkSession) -> None:
    whole = [
        0.0,
        1.0,
        2.0,
        3.0,
        2.0**22,
        2.0**23,
        2.0**50,
        2.0**51,
        2.0**52,
        2.0**53,
        1e15,
        1e16,
        1e300,
        5e-324,
    ]
    near = [w + half for w in whole for half in (0.5, 0.25, 0.125, 0.75, 0.375)]
    values = [0.49999999999999994, -0.49999999999999994, math.nan, math.inf, -0.0, 9007199254740993.0]
    values += [v for x in near for v in (x, -x, math.nextafter(x, 0), -math.nextafter(x, math.inf))]
    schema = Schema(d="float64", f="float32")
    events = [{"d": v, "f": to_float32(v)} for v in values]
    exprs = [x for c in (col("d"), col("f")) for x in (c.round(), c.floor(), c.ceil(), c.cast("int64"))]
    check(spark, exprs, events, schema)
    rounded = natively(
        spark, [lit(2.5).round(), lit(-2.5).round(), lit(0.49999999999999994).round()], events[:1], schema
    )
    assert rounded == [[3.0], [-3.0], [0.0]]


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
@both_ways
def test_is_in_knows_one_nan_and_one_zero(spark: SparkSession, many: bool, compiled: bool) -> None:
    filler = [float(n) for n in range(100, 130)] if many else []  # beyond 10 values Spark makes a hash set
    schema = Schema(d="float64?", f="float32?", l="int64?", s="string?", b="bool?", t="timestamp?")
    numbers = (None, 0.0, -0.0, math.nan, 1.5, 0.1)
    events = [
        {
            "d": x,
            "f": None if x is None else to_float32(x),
            "l": n,
            "s": s,
            "b": None if n is None else n > 0,
            "t": n,
        }
        for x in numbers
        for n, s in ((None, None), (0, ""), (5, "ß"), (2**63 - 1, "x"))
    ]
    d, f = col("d"), col("f")
    exprs = [x.is_in([*v, *filler]) for x in (d, f) for v in ([-0.0], [0.0], [math.nan], [0.1, 2])]
    exprs += [col("l").is_in([5, *map(int, filler)]), col("s").is_in(["ß", "", *map(str, filler)])]
    exprs += [col("b").is_in([True]), col("t").is_in([0, 5]), ~col("l").is_in([5])]
    check(spark, exprs, events, schema, compiled=compiled)


def test_logic_is_kleene(spark: SparkSession) -> None:
    schema = Schema(a="bool?", b="bool?", c="bool")
    events = [
        {"a": a, "b": b, "c": c}
        for a in (None, True, False)
        for b in (None, True, False)
        for c in (True, False)
    ]
    a, b, c = col("a"), col("b"), col("c")
    exprs = [a & b, a | b, a & c, a | c, ~a, c & c, a == b, a != c, when(a, b).otherwise(c), when(a, c)]
    exprs += [a.cast("int32"), a.cast("float64"), hash_of(a, b), coalesce(a, b), when(a, 1).when(b, 2)]
    check(spark, exprs, events, schema)


def test_columns_are_found_by_their_exact_name(spark: SparkSession) -> None:
    schema = Schema({"a.b": "int32", "A": "int32", "a": "int32", "`x` --": "int32", "$time": "int64"})
    event = {"a.b": 1, "A": 2, "a": 3, "`x` --": 4, "$time": 5}
    check(spark, [col(name) + 0 for name in schema.names], [event], schema)


def test_what_is_not_lowered() -> None:
    schema = Schema(s="string", a="int64", b="int64", t="timestamp")
    assert lower(col("s").lower() == "x", schema) is None
    assert lower(col("s") == "\ud800", schema) is None
    assert lower(col("s").is_in(["\ud800"]), schema) is None
    assert lower(col("s").starts_with("\udfff"), schema) is None
    nested: Expr = col("a")
    for _ in range(8):
        nested = nested // col("b")
    assert lower(nested, schema) is None


def to_float32(x: float) -> float:
    import numpy as np

    with np.errstate(over="ignore"):
        return float(np.float32(x))
