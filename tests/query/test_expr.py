"""Expressions: how they are written, read back and compared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from penstock.query.expr import (
    Expr,
    InList,
    Literal,
    as_expr,
    coalesce,
    col,
    greatest,
    hash_of,
    least,
    lit,
    when,
)
from penstock.query.types import DataType
from tests.query.stream.streams import fails

A, B = col("a"), col("b")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (A + 1, "(a + 1)"),
        (1 + A, "(1 + a)"),
        (A - 1, "(a - 1)"),
        (1 - A, "(1 - a)"),
        (A * 2, "(a * 2)"),
        (2 * A, "(2 * a)"),
        (A / 2, "(a / 2)"),
        (2 / A, "(2 / a)"),
        (A // 2, "(a // 2)"),
        (2 // A, "(2 // a)"),
        (A % 2, "(a % 2)"),
        (2 % A, "(2 % a)"),
        (-A, "neg(a)"),
        (abs(A), "abs(a)"),
        (A.abs(), "abs(a)"),
        (A.floor(), "floor(a)"),
        (A.ceil(), "ceil(a)"),
        (A.round(), "round(a)"),
        (A.sqrt(), "sqrt(a)"),
        (A == 1, "(a == 1)"),
        (A != 1, "(a != 1)"),
        (A < 1, "(a < 1)"),
        (A <= 1, "(a <= 1)"),
        (A > 1, "(a > 1)"),
        (A >= 1, "(a >= 1)"),
        (A.between(1, 2), "((a >= 1) and (a <= 2))"),
        (A & B, "(a and b)"),
        (A | B, "(a or b)"),
        (lit(True) & A, "(True and a)"),
        (lit(True) | A, "(True or a)"),
        (~A, "(not a)"),
        (A.is_in([1, 2]), "(a in (1, 2))"),
        (A.is_null(), "(a is null)"),
        (A.is_not_null(), "(not (a is null))"),
        (A.fill_null(0), "coalesce(a, 0)"),
        (A.cast("int32"), "cast(a as int32)"),
        (A.lower(), "lower(a)"),
        (A.length(), "length(a)"),
        (A.starts_with("x"), "starts_with(a, 'x')"),
        (A.truncate("1m"), "truncate(a, '1m')"),
        (hash_of(A, 1), "hash_of(a, 1)"),
        (least(A, B), "least(a, b)"),
        (greatest(A, 3), "greatest(a, 3)"),
        (coalesce(A, B, 0), "coalesce(a, b, 0)"),
        (when(A, 1).when(B, 2).otherwise(3), "(when a then 1 when b then 2 otherwise 3)"),
    ],
)
def test_expressions_read_as_they_are_written(expr: Expr, text: str) -> None:
    assert repr(expr) == text


def test_columns_are_those_it_reads() -> None:
    assert (col("c") < A + B * 2).columns() == {"a", "b", "c"}
    assert lit(1).columns() == frozenset()
    assert when(A, B).otherwise(col("c")).columns() == {"a", "b", "c"}
    assert hash_of(A, 1, B).columns() == {"a", "b"}


def test_keys_tell_constants_of_different_types_apart() -> None:
    keys = {(A + value).key() for value in (1, 1.0, True, "1")}
    assert len(keys) == 4
    assert (A + 1).key() == (col("a") + 1).key()
    assert (A + 1).key() != (A - 1).key()
    assert A.is_in([1, 2]).key() != A.is_in([2, 1]).key()
    assert lit(None, "int32").key() != lit(None, "int64").key()
    assert lit(0.0).key() != lit(-0.0).key()
    assert when(A, 1).key() != when(A, 1).otherwise(0).key()


def test_constants() -> None:
    assert lit(datetime(1970, 1, 1, 0, 0, 1)).value == 1_000_000
    in_berlin = timezone(timedelta(hours=1))
    assert lit(datetime(1970, 1, 1, 1, 0, 1, tzinfo=in_berlin)).value == 1_000_000
    assert lit(datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)).value == -1_000_000
    assert lit(5, "timestamp").dtype is DataType.TIMESTAMP
    assert lit(2, "float32").value == 2.0
    assert isinstance(lit(2, "float32").value, float)
    assert lit(np.int32(7)).value == 7
    assert type(lit(np.float32(0.5)).value) is float
    for unit in ("s", "us", "ns"):
        moment = lit(np.datetime64(1, "s").astype(f"datetime64[{unit}]"))
        assert (moment.value, moment.dtype) == (1_000_000, DataType.TIMESTAMP)
    assert isinstance(as_expr(3), Literal)
    assert as_expr(A) is A


def test_membership_keeps_plain_constants() -> None:
    values = A.is_in(np.array([1, 2], np.int64))
    assert isinstance(values, InList)
    assert values.values == (1, 2)
    assert all(type(value) is int for value in values.values)
    moments = A.is_in({datetime(1970, 1, 1, 0, 0, 1)})
    assert isinstance(moments, InList)
    assert moments.values == (1_000_000,)


def test_errors() -> None:
    fails(lambda: bool(A > 1), "no truth value", "(a > 1)", "write & for and")
    fails(lambda: 1 < A < 3, "no truth value", ".between")
    fails(lambda: A and B, "no truth value")
    fails(lambda: lit(None), "a null constant needs a type", "lit(None, 'int64')")
    fails(lambda: lit([1]), "a constant cannot be a list")
    fails(lambda: lit(2**63), "must fit in 64 bits")
    fails(lambda: A + object(), "a constant cannot be a object")
    fails(lambda: lit("x", "int64"), "does not fit its type int64", "'x'")
    fails(lambda: lit(1.5, "int32"), "does not fit its type int32")
    fails(lambda: lit(2**31, "int32"), "does not fit its type int32")
    fails(lambda: lit(True, "int32"), "does not fit its type int32")
    fails(lambda: lit(1, "bool"), "does not fit its type bool")
    fails(lambda: lit(1, "string"), "does not fit its type string")
    fails(lambda: lit(datetime(2020, 1, 1), "int64"), "does not fit its type int64")
    fails(lambda: lit(1, "number"), "unknown type 'number'")
    fails(lambda: col(3), "name must be text")  # type: ignore[arg-type]
    fails(lambda: A.is_in("abc"), "is_in needs a list")
    fails(lambda: A.is_in(3), "is_in needs a list")
    fails(lambda: A.is_in([B]), "is_in takes constants only")
    fails(lambda: A.is_in([[1]]), "a constant cannot be a list")
    fails(lambda: A.starts_with(B), "needs a constant string")  # type: ignore[arg-type]
    fails(lambda: A.truncate("0s"), "truncation unit must be positive")
    fails(lambda: A.truncate("x"), "truncation unit is not a length of time")
    fails(lambda: A.cast("number"), "unknown type 'number'")
    fails(lambda: coalesce(), "coalesce needs at least one value")
    fails(lambda: least(), "least needs at least one value")
    fails(lambda: greatest(), "greatest needs at least one value")
    fails(lambda: hash_of(), "hash_of needs at least one value")
