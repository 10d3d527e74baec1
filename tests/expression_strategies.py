"""Hypothesis strategies: random typed expressions, and random rows for them to run on.

All expressions are over the columns of ``SCHEMA``, which has every type with and without nulls.
"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from penstock.query.expr import Expr, coalesce, col, greatest, hash_of, least, lit, when
from penstock.query.types import DataType, Field, Schema

_NAMES = {
    DataType.BOOL: "b",
    DataType.INT32: "i",
    DataType.INT64: "l",
    DataType.FLOAT32: "f",
    DataType.FLOAT64: "d",
    DataType.TIMESTAMP: "t",
    DataType.STRING: "s",
}
SCHEMA = Schema(
    Field(name + ("0" if nullable else ""), dtype, nullable)
    for dtype, name in _NAMES.items()
    for nullable in (False, True)
)

_NUMBERS = ("i", "i0", "l", "l0", "f", "f0", "d", "d0")
_INTEGERS = ("i", "i0", "l", "l0")
_EDGES_32 = [0, 1, -1, 2, -2, 7, 2**31 - 1, -(2**31)]
_EDGES_64 = [*_EDGES_32, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)]
_EDGES_FLOAT = [0.0, -0.0, 0.5, -0.5, 1.5, -2.5, 1e10, -1e10, 1e19, -1e19, math.inf, -math.inf, math.nan]
_TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "ÄB",
    "ß",
    "日本",
    "12",
    " -7 ",
    "+3",
    "1.5",
    "1e3",
    "nan",
    "9" * 20,
    "x" * 40,
    "2024-02-29",
]

_int32 = st.sampled_from(_EDGES_32) | st.integers(-(2**31), 2**31 - 1)
_int64 = st.sampled_from(_EDGES_64) | st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)
_float32 = st.sampled_from(_EDGES_FLOAT).map(lambda x: _to_float32(x)) | st.floats(width=32)
_float64 = st.sampled_from(_EDGES_FLOAT) | st.floats() | st.floats(-100, 100)
_text = st.sampled_from(_TEXTS) | st.text(st.characters(codec="utf-8"), max_size=5)
_FORMATS = ["%Y-%m-%d %H:%M:%S.%f", "%j%%Y", ""]
_COUNTS = st.none() | st.integers(0, 3)
_time = st.sampled_from([0, -1, 1_000_000, -1_000_001]) | st.integers(-(2**50), 2**50)

_VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    DataType.BOOL: st.booleans(),
    DataType.INT32: _int32,
    DataType.INT64: _int64,
    DataType.FLOAT32: _float32,
    DataType.FLOAT64: _float64,
    DataType.TIMESTAMP: _time,
    DataType.STRING: _text,
}


def values(field: Field) -> st.SearchStrategy[Any]:
    """Values of a column, many of them at the edges of its type."""
    return (st.none() | _VALUES[field.dtype]) if field.nullable else _VALUES[field.dtype]


def rows(min_size: int = 20, max_size: int = 60) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Events of ``SCHEMA``."""
    row = st.fixed_dictionaries({field.name: values(field) for field in SCHEMA})
    return st.lists(row, min_size=min_size, max_size=max_size)


def expressions(depth: int = 3) -> st.SearchStrategy[Expr]:
    """Expressions of any type that are right over ``SCHEMA``."""
    return st.one_of(numbers(depth), conditions(depth), times(depth), texts(depth), made_texts(depth))


def numbers(depth: int) -> st.SearchStrategy[Expr]:
    """Expressions that give an integer or a float."""
    leaves = st.sampled_from(_NUMBERS).map(col) | _int64.map(lit) | _float64.map(lit) | _typed_null(_NUMBERS)
    if depth == 0:
        return leaves
    inner = st.deferred(lambda: numbers(depth - 1))
    return st.one_of(
        st.sampled_from(_NUMBERS).map(col),
        integers(depth),
        st.builds(_arithmetic, st.sampled_from("+-*/"), inner, inner),
        st.builds(_math, st.sampled_from(["neg", "abs", "floor", "ceil", "round", "sqrt", "sign"]), inner),
        st.builds(_math, st.sampled_from(["exp", "log"]), inner),
        st.builds(lambda a, b: a.pow(b), inner, inner),
        st.builds(lambda a, to: a.cast(to), inner, st.sampled_from(["int32", "int64", "float32", "float64"])),
        st.builds(
            lambda a, to: a.cast(to), texts(0), st.sampled_from(["int32", "int64", "float32", "float64"])
        ),
        st.builds(lambda a, to: a.cast(to), conditions(depth - 1), st.sampled_from(["int32", "float32"])),
        _choices(inner, depth),
        st.builds(
            lambda kind, a: kind(*a),
            st.sampled_from([least, greatest]),
            st.lists(inner, min_size=1, max_size=3),
        ),
    )


def integers(depth: int) -> st.SearchStrategy[Expr]:
    """Expressions that give an int32 or an int64."""
    leaves = st.sampled_from(_INTEGERS).map(col) | _int64.map(lit)
    if depth == 0:
        return leaves
    inner = st.deferred(lambda: integers(depth - 1))
    any_operand = st.one_of(numbers(0), conditions(0), times(0), texts(0))
    return st.one_of(
        leaves,
        st.builds(_arithmetic, st.sampled_from(["+", "-", "*", "//", "%"]), inner, inner),
        st.builds(lambda a, b: a - b, times(depth - 1), times(depth - 1)),
        st.builds(lambda a: a.length(), texts(depth - 1)),
        st.builds(
            _math,
            st.sampled_from(["year", "quarter", "month", "day", "hour", "minute", "second", "day_of_week"]),
            times(depth - 1),
        ),
        st.builds(lambda a: a.cast("int64"), times(depth - 1)),
        st.builds(lambda operands: hash_of(*operands), st.lists(any_operand, min_size=1, max_size=4)),
    )


def conditions(depth: int) -> st.SearchStrategy[Expr]:
    """Expressions that give a boolean."""
    leaves = st.sampled_from(["b", "b0"]).map(col) | st.booleans().map(lit)
    if depth == 0:
        return leaves
    inner = st.deferred(lambda: conditions(depth - 1))
    number, time, text = numbers(depth - 1), times(depth - 1), texts(depth - 1)
    order = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    equality = st.sampled_from(["==", "!="])
    return st.one_of(
        leaves,
        st.builds(_comparison, order, number, number),
        st.builds(_comparison, order, time, time),
        st.builds(_comparison, equality, text, text),
        st.builds(_comparison, equality, inner, inner),
        st.builds(lambda a, b, both: a & b if both else a | b, inner, inner, st.booleans()),
        inner.map(lambda a: ~a),
        st.one_of(number, time, text, inner).map(lambda a: a.is_null()),
        st.builds(lambda a, b: a.is_in(b), integers(depth - 1), st.lists(_int64, min_size=1, max_size=12)),
        st.builds(lambda a, b: a.is_in(b), st.sampled_from(["f", "f0", "d", "d0"]).map(col), _float_list()),
        st.builds(lambda a, b: a.is_in(b), text, st.lists(_text, min_size=1, max_size=3)),
        st.builds(lambda a, prefix: a.starts_with(prefix), text, st.sampled_from(["", "a", "Ä", "x" * 9])),
        st.builds(lambda a, part: a.ends_with(part), text, st.sampled_from(["", "b", "Ä", "x" * 9])),
        st.builds(lambda a, part: a.contains(part), text, st.sampled_from(["", "b", "Ä", "x" * 9])),
        st.builds(lambda a, part: a.regexp_match(part), text, st.sampled_from(["[0-9]+", "^a", "(?i)ä"])),
        number.map(lambda a: a.cast("bool")),
        _choices(inner, depth),
    )


def times(depth: int) -> st.SearchStrategy[Expr]:
    """Expressions that give a timestamp."""
    leaves = st.sampled_from(["t", "t0"]).map(col) | _time.map(lambda us: lit(us, "timestamp"))
    if depth == 0:
        return leaves
    inner = st.deferred(lambda: times(depth - 1))
    return st.one_of(
        leaves,
        st.builds(lambda a, unit: a.truncate(unit), inner, st.sampled_from(["1us", "7ms", "1s", "1d"])),
        st.builds(lambda a, b: a + b, inner, st.sampled_from(["i", "i0", "l"]).map(col)),
        st.builds(lambda a, b: a - b, inner, _int32.map(lit)),
        st.sampled_from(["l", "l0"]).map(lambda name: col(name).cast("timestamp")),
        texts(depth - 1).map(lambda a: a.parse_time("%Y-%m-%d")),
        _choices(inner, depth),
        st.lists(inner, min_size=1, max_size=3).map(lambda operands: least(*operands)),
    )


def texts(depth: int) -> st.SearchStrategy[Expr]:
    """Expressions that give a string."""
    leaves = st.sampled_from(["s", "s0"]).map(col) | _text.map(lit)
    if depth == 0:
        return leaves
    inner = st.deferred(lambda: texts(depth - 1))
    return st.one_of(
        leaves,
        st.builds(_math, st.sampled_from(["lower", "upper", "trim"]), inner),
        st.builds(lambda a, start, length: a.substr(start, length), inner, st.integers(0, 3), _COUNTS),
        st.builds(lambda a, old, new: a.replace(old, new), inner, st.sampled_from(["a", "xx"]), _text),
        st.builds(lambda a, part: a.split_part("x", part), inner, st.integers(1, 3)),
        st.builds(lambda a, group: a.regexp_extract("([a-z]+)([0-9]?)", group), inner, st.integers(0, 2)),
        inner.map(lambda a: a.trim("x1")),
        _choices(inner, depth),
    )


def made_texts(depth: int) -> st.SearchStrategy[Expr]:
    """Expressions that give a string which is made of values; nothing in the same step looks into it."""
    if depth == 0:
        return texts(0)
    inner = st.deferred(lambda: made_texts(depth - 1) | texts(depth - 1))
    return st.one_of(
        st.builds(lambda a, others: a.concat(*others), inner, st.lists(inner, max_size=2)),
        st.builds(lambda a: a.cast("string"), numbers(depth - 1) | conditions(depth - 1)),
        st.builds(lambda a, how: a.format_time(how), times(depth - 1), st.sampled_from(_FORMATS)),
        _choices(inner, depth),
    )


def _choices(inner: st.SearchStrategy[Expr], depth: int) -> st.SearchStrategy[Expr]:
    condition = conditions(depth - 1)
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda operands: coalesce(*operands)),
        st.builds(lambda c, a: when(c, a), condition, inner),
        st.builds(
            lambda c, a, d, b, e: when(c, a).when(d, b).otherwise(e),
            condition,
            inner,
            condition,
            inner,
            inner,
        ),
    )


def _typed_null(names: tuple[str, ...]) -> st.SearchStrategy[Expr]:
    return st.sampled_from(names).map(lambda name: lit(None, SCHEMA[name].dtype))


def _float_list() -> st.SearchStrategy[list[float]]:
    return st.lists(_float64, min_size=1, max_size=4)


def _arithmetic(op: str, a: Expr, b: Expr) -> Expr:
    return {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: a / b,
        "//": lambda: a // b,
        "%": lambda: a % b,
    }[op]()


def _comparison(op: str, a: Expr, b: Expr) -> Expr:
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def _math(function: str, a: Expr) -> Expr:
    return -a if function == "neg" else getattr(a, function)()


def _to_float32(x: float) -> float:
    import numpy as np

    return float(np.float32(x))
