"""Which type an expression has, and whether it may be null."""

from __future__ import annotations

from datetime import datetime

import pytest

from penstock.query.expr import Expr, Literal, coalesce, col, greatest, hash_of, least, lit, when
from penstock.query.inference import infer, literal_type, resolved
from penstock.query.types import DataType, Schema
from tests.query.stream.streams import fails

SCHEMA = Schema(
    b="bool",
    i="int32",
    l="int64",
    f="float32",
    d="float64",
    t="timestamp",
    s="string",
    bn="bool?",
    i_n="int32?",
    ln="int64?",
    dn="float64?",
    tn="timestamp?",
    sn="string?",
)
B, I, L, F, D, T, S = (  # noqa: E741
    col(name) for name in ("b", "i", "l", "f", "d", "t", "s")
)
BN, IN, LN, DN, TN, SN = (col(name) for name in ("bn", "i_n", "ln", "dn", "tn", "sn"))


def type_of(expr: Expr) -> str:
    typed = resolved(expr, SCHEMA)
    return typed.dtype.value + ("?" if typed.nullable else "")


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        # columns and constants
        (I, "int32"),
        (IN, "int32?"),
        (lit(1), "int64"),
        (lit(2**40), "int64"),
        (lit(1.5), "float64"),
        (lit(True), "bool"),
        (lit("x"), "string"),
        (lit(datetime(2020, 1, 1)), "timestamp"),
        (lit(None, "int32"), "int32?"),
        (lit(1, "int32"), "int32"),
        # promotion of columns
        (I + I, "int32"),
        (I + L, "int64"),
        (I + F, "float64"),
        (L + F, "float64"),
        (F + F, "float32"),
        (F + D, "float64"),
        (I + IN, "int32?"),
        # constants yield, unless they would lose their range or their fraction
        (I + 1, "int32"),
        (1 + I, "int32"),
        (I + 2**40, "int64"),
        (I + 1.5, "float64"),
        (L + 1.5, "float64"),
        (F + 1, "float32"),
        (F + 1.5, "float32"),
        (F + (lit(1) + 1.5), "float32"),
        (lit(1) + 2, "int64"),
        (I + lit(1, "int64"), "int64"),
        # division
        (I / I, "float64?"),
        (F / F, "float64?"),
        (I // 2, "int32?"),
        (I % 2, "int32?"),
        (L % I, "int64?"),
        # timestamps
        (T - T, "int64"),
        (T + 1, "timestamp"),
        (1 + T, "timestamp"),
        (T - L, "timestamp"),
        (TN + 1, "timestamp?"),
        (T.truncate("1m"), "timestamp"),
        (TN.truncate("1m"), "timestamp?"),
        # comparison and logic
        (I < 3, "bool"),
        (IN < 3, "bool?"),
        (I == 1.5, "bool"),
        (S == "x", "bool"),
        (SN != "x", "bool?"),
        (B == True, "bool"),  # noqa: E712
        (lit(datetime(2020, 1, 1)) < T, "bool"),
        (B & BN, "bool?"),
        (B | B, "bool"),
        (~B, "bool"),
        (~BN, "bool?"),
        (I.between(1, 3), "bool"),
        (IN.is_null(), "bool"),
        (IN.is_not_null(), "bool"),
        (I.is_in([1, 2]), "bool"),
        (IN.is_in([1, 2]), "bool?"),
        (S.is_in(["a"]), "bool"),
        (D.is_in([1, 1.5]), "bool"),
        (T.is_in([datetime(2020, 1, 1)]), "bool"),
        # functions
        (-I, "int32"),
        (abs(F), "float32"),
        (D.round(), "float64"),
        (I.round(), "int32"),
        (F.floor(), "int64"),
        (I.ceil(), "int64"),
        (I.sqrt(), "float64"),
        (F.sqrt(), "float64"),
        (DN.sqrt(), "float64?"),
        (S.lower(), "string"),
        (SN.lower(), "string?"),
        (S.length(), "int32"),
        (S.starts_with("a"), "bool"),
        (hash_of(SN, IN, 1), "int64"),
        # casts
        (D.cast("int32"), "int32"),
        (DN.cast("int32"), "int32?"),
        (B.cast("float64"), "float64"),
        (I.cast("bool"), "bool"),
        (S.cast("int64"), "int64?"),
        (S.cast("string"), "string"),
        (I.cast("string"), "string"),
        (L.cast("timestamp"), "timestamp"),
        (T.cast("int64"), "int64"),
        # several values
        (least(I, L), "int64"),
        (least(I, IN), "int32"),
        (greatest(IN, IN), "int32?"),
        (greatest(I, 3), "int32"),
        (greatest(T, TN), "timestamp"),
        (least(1, 2), "int64"),
        (coalesce(IN, I), "int32"),
        (coalesce(IN, IN), "int32?"),
        (coalesce(IN, 0), "int32"),
        (coalesce(SN, "x"), "string"),
        (IN.fill_null(0.5), "float64"),
        (when(B, 1).otherwise(2), "int64"),
        (when(B, I).otherwise(2), "int32"),
        (when(B, I), "int32?"),
        (when(B, I).otherwise(IN), "int32?"),
        (when(BN, "a").when(B, "b").otherwise("c"), "string"),
        (when(B, I).otherwise(F), "float64"),
        (F + when(B, 1).otherwise(2), "float32"),
    ],
)
def test_types(expr: Expr, expected: str) -> None:
    assert type_of(expr) == expected


def test_a_bare_integer_is_weak_until_it_becomes_a_column() -> None:
    assert infer(lit(1), SCHEMA).weak
    assert infer(lit(1) + 2, SCHEMA).weak
    assert infer(-lit(1), SCHEMA).weak
    assert infer(when(B, 1).otherwise(0), SCHEMA).weak
    assert not infer(lit(1, "int32"), SCHEMA).weak
    assert not infer(I + 1, SCHEMA).weak
    assert not resolved(lit(1), SCHEMA).weak


def test_the_type_of_a_constant_alone() -> None:
    assert literal_type(Literal(1)) is DataType.INT64
    assert literal_type(Literal(1, DataType.INT32)) is DataType.INT32
    assert literal_type(Literal(1.5)) is DataType.FLOAT64


@pytest.mark.parametrize(
    ("expr", "parts"),
    [
        (col("speeed") + 1, ("unknown column 'speeed'",)),
        (S + 1, ("'+' needs two numbers", "string and int32", "columns s")),
        (S + "x", ("'+' needs two numbers",)),
        (B + 1, ("'+' needs two numbers",)),
        (T + T, ("'+' needs two numbers", "timestamp and timestamp")),
        (T * 2, ("'*' needs two numbers",)),
        (1 - T, ("'-' needs two numbers",)),
        (T + 1.5, ("'+' needs two numbers",)),
        (D // 2, ("'//' needs two integers",)),
        (I % 1.5, ("'%' needs two integers",)),
        (S == 1, ("types do not fit together", "string and int32", "cast")),
        (T > 5, ("types do not fit together", "timestamp")),
        (B == 1, ("types do not fit together",)),
        (S < "x", ("strings can be compared with == and != only",)),
        (B < True, ("booleans can be compared with == and != only",)),
        (I & B, ("i is not a condition", "compare it")),
        (B | S, ("s is not a condition",)),
        (~I, ("i is not a condition",)),
        (when(I, 1), ("i is not a condition",)),
        (when(B, 1).otherwise("x"), ("types do not fit together", "int32 and string")),
        (coalesce(I, S), ("types do not fit together",)),
        (least(S, S), ("least needs numbers or timestamps",)),
        (greatest(B, B), ("greatest needs numbers or timestamps",)),
        (least(I, T), ("types do not fit together",)),
        (abs(S), ("abs needs a number",)),
        (-B, ("neg needs a number",)),
        (T.floor(), ("floor needs a number",)),
        (I.lower(), ("lower needs a string",)),
        (I.length(), ("length needs a string",)),
        (I.starts_with("x"), ("starts_with needs a string",)),
        (I.truncate("1s"), ("truncate needs a timestamp",)),
        (I.cast("string").upper(), ("a string that this step makes", "with_columns(text=...)")),
        (S.concat(S).is_in(["a"]), ("a string that this step makes", "with_columns")),
        (hash_of(when(B, S.concat(S)).otherwise(S)), ("a string that this step makes",)),
        (S.concat(S).cast("int64"), ("a string that this step makes",)),
        (T.cast("string"), ("a timestamp is not cast to string", "format_time")),
        (S.cast("bool"), ("a string cannot be cast to bool",)),
        (S.cast("timestamp"), ("a string cannot be cast to timestamp",)),
        (I.cast("timestamp"), ("a timestamp can be cast from and to int64",)),
        (T.cast("float64"), ("a timestamp can be cast from and to int64",)),
        (I.is_in([]), ("is_in needs at least one value",)),
        (I.is_in([None]), ("is_in takes no null", "x.is_null()")),
        (I.is_in(["a"]), ("'a' is not a int32",)),
        (I.is_in([1.5]), ("1.5 is not a int32",)),
        (S.is_in([1]), ("1 is not a string",)),
        (hash_of(col("x")), ("unknown column 'x'",)),
    ],
)
def test_misfits(expr: Expr, parts: tuple[str, ...]) -> None:
    fails(lambda: infer(expr, SCHEMA), *parts)


def test_what_is_no_expression() -> None:
    with pytest.raises(TypeError, match="not an expression"):
        infer("x", SCHEMA)  # type: ignore[arg-type]
