"""Explode makes several rows of one event, in order, numbered by ``$sub``."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.columns.explode import Explode
from penstock.query.expr import col
from penstock.query.steps import ExplodeSpec
from tests.harness import Harness, layout

_SPEC = ExplodeSpec(
    rows=(
        (("side", col("side")), ("v", col("a"))),
        (("side", col("side").lower()), ("v", col("b"))),
        (("side", col("side")), ("v", col("a") + col("b"))),
    ),
    conditions=(None, col("b") > 0, col("a").is_not_null()),
)
_IN = layout({"t": "timestamp", "side": "string", "a": "int64?", "b": "int64?"}, "t", [ORDER, SUB, LATE])
_OUT = layout({"side": "string", "v": "int64?"}, TIME, [TIME, ORDER, SUB, LATE])
numbers = st.none() | st.integers(-2, 2)


def expected(row: dict[str, Any]) -> list[dict[str, Any]]:
    a, b = row["a"], row["b"]
    made = [(row["side"], a)]
    made += [(row["side"].lower(), b)] if b is not None and b > 0 else [None]  # type: ignore[list-item]
    made += [(row["side"], None if b is None else a + b)] if a is not None else [None]  # type: ignore[list-item]
    return [
        {
            "side": each[0],
            "v": each[1],
            TIME: row["t"],
            ORDER: row[ORDER],
            SUB: row[SUB] * 3 + index,
            LATE: row[LATE],
        }
        for index, each in enumerate(made)
        if each is not None
    ]


@given(st.lists(st.tuples(numbers, numbers), max_size=60), st.integers(0, 99), st.integers(1, 9))
def test_rows_keep_order_and_are_numbered(pairs: list[tuple[Any, Any]], seed: int, block_events: int) -> None:
    rows = [
        {"t": index, "side": "LR"[index % 2], "a": a, "b": b, ORDER: 7, SUB: index, LATE: index % 2 == 0}
        for index, (a, b) in enumerate(pairs)
    ]
    harness = Harness(Explode, _SPEC, [_IN], _OUT, seed=seed, block_events=block_events)
    harness.feed(rows)
    assert harness.rows() == [made for row in rows for made in expected(row)]


def test_fan_out_is_the_number_of_rows() -> None:
    assert Harness(Explode, _SPEC, [_IN], _OUT).operator.fan_out == 3


def test_an_explode_that_nobody_reads_takes_everything() -> None:
    Harness(Explode, _SPEC, [_IN], None).feed([{"side": "L"}] * 20)
