"""Flat map calls a Python function per event and checks what it returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.columns.flat_map import FlatMap
from penstock.query.errors import RunError
from penstock.query.steps import FlatMapSpec
from tests.harness import Harness, layout

_IN = layout({"t": "timestamp", "n": "int64?", "s": "string?"}, "t", [ORDER, SUB, LATE])
_OUT = layout({"v": "float64?", "word": "string"}, TIME, [TIME, ORDER, SUB, LATE])


def harness_of(function: Any, **options: Any) -> Harness:
    return Harness(FlatMap, FlatMapSpec(function), [_IN], _OUT, **options)


def test_any_number_of_rows_with_the_events_time_and_order() -> None:
    def repeat(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for index in range(event["n"] or 0):
            yield {"v": None if index == 1 else event["t"], "word": event["s"] or "none"}

    harness = harness_of(repeat)
    rows = [
        {
            "t": t,
            "n": None if t % 5 == 0 else t % 4,
            "s": "x" if t % 2 else None,
            ORDER: t,
            SUB: 2,
            LATE: t > 9,
        }
        for t in range(40)
    ]
    harness.feed(rows)
    assert harness.rows() == [
        {
            "v": None if index == 1 else float(row["t"]),
            "word": row["s"] or "none",
            TIME: row["t"],
            ORDER: row[ORDER],
            SUB: 2 * 2**20 + index,
            LATE: row[LATE],
        }
        for row in rows
        for index in range(row["n"] or 0)
    ]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"v": 1.0}, "without column 'word'"),
        ({"v": 1.0, "word": "a", "x": 1}, "unknown column 'x'"),
        ({"v": "one", "word": "a"}, "str 'one' for column 'v'"),
        ({"v": 1.0, "word": None}, "None for column 'word'"),
        ([1], "a row that is list"),
    ],
)
def test_a_row_that_does_not_fit_stops_the_run(row: Any, problem: str) -> None:
    def broken(event: dict[str, Any]) -> list[Any]:
        return [row] if event["n"] == 3 else []

    with pytest.raises(RunError) as caught:
        harness_of(broken).feed([{"t": n, "n": n, "s": "a"} for n in range(6)])
    for part in (problem, "step 'step'", "broken", "{'t': 3, 'n': 3, 's': 'a'}"):
        assert part in str(caught.value)


def test_an_exception_names_step_function_and_event() -> None:
    def divide(event: dict[str, Any]) -> list[dict[str, Any]]:
        event["s"] = "changed"
        return [{"v": 1 / event["n"], "word": "a"}]

    with pytest.raises(RunError, match="divide") as caught:
        harness_of(divide).feed([{"t": n, "n": 2 - n, "s": "a"} for n in range(6)])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    for part in ("step 'step'", "ZeroDivisionError: division by zero", "{'t': 2, 'n': 0, 's': 'a'}"):
        assert part in str(caught.value)
