"""Lowered expressions on strings and timestamps mean what the reference says."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from penstock.query.expr import Expr, coalesce, col, greatest, hash_of, least, lit, when
from penstock.query.types import Schema
from tests.spark.native.native import check

both_ways = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "interpreted"])

_SPACES = [
    "\t",
    "\n",
    "\x0b",
    "\x1c",
    "\x1f",
    "\x85",
    "\xa0",
    "\u1680",
    "\u2003",
    "\u2028",
    "\u202f",
    "\u3000",
]
_NO_SPACES = ["\x00", "\x01", "\x1b", "\u200b", "\ufeff", "\u180e"]
_TEXTS = [
    "",
    " ",
    "12",
    "+3",
    " -7 ",
    "--1",
    "1.5",
    ".5",
    "5.",
    "1e3",
    "1E-3",
    "1e",
    "1e400",
    "-1e400",
    "1d",
    "1f",
]
_TEXTS += [
    "2147483647",
    "2147483648",
    "-2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "0" * 40 + "7",
]
_TEXTS += [
    "9" * 30,
    "nan",
    "NaN",
    "inf",
    "Infinity",
    "0x10",
    "1_000",
    "١٢",
    "１２",
    "1 2",
    "12\n",
    "3.4028235677973366e38",
]
_TEXTS += [
    "1.00000017881393432617187499",
    "0.1",
    "4.9e-324",
    "1e-400",
    "true",
    "A",
    "日本",
    "𝒳y",
    "e\u0301",
    "\x00",
]


@both_ways
def test_strings(spark: SparkSession, compiled: bool) -> None:
    schema = Schema(s="string?")
    texts = _TEXTS + [space + "12" + space for space in _SPACES + _NO_SPACES]
    s = col("s")
    exprs: list[Expr] = [s.cast(to) for to in ("int32", "int64", "float32", "float64")]
    exprs += [
        s.length(),
        s.starts_with(""),
        s.starts_with("日"),
        s.starts_with("%"),
        s == "12",
        s != "a'\"\\`$",
    ]
    exprs += [
        hash_of(s),
        coalesce(s, "none"),
        when(s == "A", "yes").otherwise(s),
        lit("\n\x00"),
    ]
    exprs += [s.ends_with("3"), s.ends_with(""), s.contains("1"), s.contains("𝒳"), s.trim(), s.trim("1+ ")]
    exprs += [s.substr(0), s.substr(1, 2), s.substr(3, 0), s.substr(2**40, 2**40), s.replace("1", "𝒳1")]
    exprs += [s.replace("  ", ""), s.split_part("1", 1), s.split_part("1", 2), s.split_part(".", 2**40)]
    check(spark, exprs, [{"s": text} for text in [None, *texts]], schema, compiled=compiled)


_PARTS = (
    lambda x: x.year(),
    lambda x: x.month(),
    lambda x: x.quarter(),
    lambda x: x.day(),
    lambda x: x.hour(),
    lambda x: x.minute(),
    lambda x: x.second(),
    lambda x: x.day_of_week(),
)


@both_ways
def test_times(spark: SparkSession, compiled: bool) -> None:
    schema = Schema(t="timestamp?", u="timestamp", n="int64")
    events = [
        {"t": t, "u": u, "n": n}
        for t in (None, -1, 0, 1_500_000, 2**63 - 1, -(2**63))
        for u in (-1_000_001, 7, 2**62)
        for n in (5, -(2**63), 2**63 - 1)
    ]
    t, u, n = col("t"), col("u"), col("n")
    exprs = [t.truncate("1s"), u.truncate("2us"), t.truncate("7d"), t - u, t + n, n + t, u - 3, t < u, t == u]
    exprs += [
        greatest(t, u),
        least(t, u),
        t.cast("int64"),
        n.cast("timestamp"),
        hash_of(t, u),
        coalesce(t, u),
    ]
    exprs += [part(x) for x in (t, u) for part in _PARTS]
    exprs += [u == lit(7, "timestamp"), when(t < u, t).otherwise(u), lit(None, "timestamp"), t.is_null()]
    check(spark, exprs, events, schema, compiled=compiled)
