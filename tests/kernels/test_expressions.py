"""Compiled expressions mean what the reference says, for every type, null, NaN and overflow."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.memory.layout import Layout
from penstock.operators.columns.rows import RowSteps
from penstock.query.expr import Expr, coalesce, col, greatest, hash_of, least, lit, when
from penstock.query.inference import resolved
from penstock.query.steps import SelectSpec
from penstock.query.types import Field, Schema
from tests.expression_strategies import SCHEMA, expressions, rows
from tests.harness import Harness, same
from tests.reference_expressions import evaluate


def compiled(exprs: list[Expr], events: list[dict[str, Any]], schema: Schema) -> list[dict[str, Any]]:
    """The values of all expressions, computed by one kernel."""
    named = tuple((f"e{index}", expr) for index, expr in enumerate(exprs))
    fields = []
    for name, expr in named:
        typed = resolved(expr, schema)
        fields.append(Field(name, typed.dtype, typed.nullable))
    harness = Harness(RowSteps, SelectSpec(named), [Layout(schema.fields)], Layout(fields), block_events=16)
    harness.feed(events)
    return harness.rows()


def check(exprs: list[Expr], events: list[dict[str, Any]], schema: Schema = SCHEMA) -> None:
    results = compiled(exprs, events, schema)
    assert len(results) == len(events)
    for event, result in zip(events, results, strict=True):
        for index, expr in enumerate(exprs):
            expected, got = evaluate(expr, event, schema), result[f"e{index}"]
            assert same(got, expected), f"{expr!r} of {event}: compiled {got!r}, reference {expected!r}"


@settings(max_examples=7)
@given(st.lists(expressions(2), min_size=8, max_size=8), rows())
def test_compiled_equals_reference(exprs: list[Expr], events: list[dict[str, Any]]) -> None:
    check(exprs, events)


@pytest.mark.slow
@settings(max_examples=60, derandomize=False)
@given(st.lists(expressions(3), min_size=8, max_size=8), rows())
def test_compiled_equals_reference_for_many_deep_expressions(
    exprs: list[Expr], events: list[dict[str, Any]]
) -> None:
    check(exprs, events)


_NUMBERS = Schema(i="int32?", l="int64?", f="float32?", d="float64?")
_NUMBER_ROWS = [
    {"i": i, "l": j, "f": f, "d": d}
    for i in (None, 0, -7, 7, -(2**31), 2**31 - 1)
    for j in (None, 0, 3, -3, -1, -(2**63), 2**63 - 1)
    for f in (None, 0.0, -0.0, 2.5, math.nan, math.inf)
    for d in (None, 0.0, -2.5, 1e300, -1e19, math.nan, -math.inf)
]


def test_every_arithmetic_operation_on_every_pair_of_types() -> None:
    pairs = [(col(a), col(b)) for a in "ilfd" for b in "ilfd"]
    exprs = [expr for a, b in pairs for expr in (a + b, a - b, a * b, a / b)]
    integers = [(col(a), col(b)) for a in "il" for b in "il"]
    exprs += [expr for a, b in integers for expr in (a // b, a % b)]
    check(exprs, _NUMBER_ROWS, _NUMBERS)


def test_every_comparison_on_every_pair_of_types() -> None:
    pairs = [(col(a), col(b)) for a in "ilfd" for b in "ilfd" if a <= b]
    check(
        [expr for a, b in pairs for expr in (a == b, a != b, a < b, a <= b, a > b, a >= b)],
        _NUMBER_ROWS,
        _NUMBERS,
    )


def test_every_function_and_cast_of_every_number() -> None:
    exprs = []
    for x in map(col, "ilfd"):
        exprs += [
            -x,
            abs(x),
            x.floor(),
            x.ceil(),
            x.round(),
            x.sqrt(),
            x.sign(),
            x.exp(),
            x.log(),
            x.pow(2.5),
            x.pow(x),
            x.is_null(),
            hash_of(x),
            x.fill_null(1),
        ]
        exprs += [x.cast(to) for to in ("bool", "int32", "int64", "float32", "float64")]
    check(exprs, _NUMBER_ROWS, _NUMBERS)


def test_extremes_pass_over_nulls_and_put_nan_last() -> None:
    operands = (col("i"), col("f"), col("d"))
    check(
        [least(*operands), greatest(*operands), coalesce(*operands), hash_of(*operands)],
        _NUMBER_ROWS,
        _NUMBERS,
    )


def test_logic_is_kleene() -> None:
    schema = Schema(a="bool?", b="bool?", c="bool")
    events = [
        {"a": a, "b": b, "c": c}
        for a in (None, True, False)
        for b in (None, True, False)
        for c in (True, False)
    ]
    a, b, c = col("a"), col("b"), col("c")
    check(
        [a & b, a | b, a & c, a | c, ~a, c & c, a == b, when(a, b).otherwise(c), when(a, c)], events, schema
    )


def test_integers_wrap_and_divide_towards_minus_infinity() -> None:
    schema = Schema(i="int32", l="int64")
    (row,) = compiled(
        [col("i") + 1, col("l") * 2, col("i") // -1, col("l") // -1, col("i") % -7, -col("l"), col("i") // 0],
        [{"i": -(2**31), "l": -(2**63)}],
        schema,
    )
    expected = [-(2**31) + 1, 0, -(2**31), -(2**63), -(2**31) % -7, -(2**63), None]
    assert list(row.values()) == expected


def test_strings() -> None:
    schema = Schema(s="string?", p="string")
    events = [
        {"s": s, "p": p} for s in (None, "", "Ab", "ß", "12", " 1e2 ", "-5", "inf") for p in ("Ab", "日本")
    ]
    s = col("s")
    exprs = [s.lower(), s.length(), s.starts_with("A"), s == "Ab", s != col("p"), s.is_in(["", "ß"])]
    exprs += [
        s.upper(),
        s.trim("1 b"),
        s.substr(1),
        s.substr(1, 1),
        s.replace("2", "--"),
        s.split_part("e", 2),
    ]
    exprs += [s.contains("b"), s.ends_with("2 "), s.regexp_match("[0-9]"), s.regexp_extract("([a-z])(f)?", 1)]
    exprs += [s.parse_time("%d"), s.regexp_extract("([A-Z])(b)?", 2), lit("x1").upper()]
    exprs += [s.cast(to) for to in ("int32", "int64", "float32", "float64")]
    exprs += [hash_of(s, col("p")), coalesce(s, "none").lower().length(), when(s == "Ab", "yes").otherwise(s)]
    check(exprs, events, schema)


def test_times() -> None:
    schema = Schema(t="timestamp?", u="timestamp", n="int64")
    leap_day = 951_827_696_000_000
    edges = (None, -1, 0, 1_500_000, leap_day, 2**63 - 1, -(2**63))
    events = [{"t": t, "u": u, "n": 5} for t in edges for u in (-1_000_001, 7)]
    t, u = col("t"), col("u")
    exprs = [
        t.truncate("1s"),
        u.truncate("2us"),
        t - u,
        t + col("n"),
        u - 3,
        t < u,
        greatest(t, u),
        t.cast("int64"),
    ]
    exprs += [
        part for x in (t, u) for part in (x.year(), x.month(), x.day(), x.hour(), x.minute(), x.second())
    ]
    exprs += [t.day_of_week(), u.day_of_week(), t.quarter(), u.quarter()]
    check([*exprs, hash_of(t, u), t.is_in([0, 1]), u == lit(7, "timestamp")], events, schema)
