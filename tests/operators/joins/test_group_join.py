"""Group joins: every left event once per window, with what matches it."""

from __future__ import annotations

from typing import Any

from penstock.memory.layout import LATE, ORDER, TIME
from penstock.operators.joins.group_join import GroupJoin
from penstock.query.aggregates import Aggregate, count, last, sum_
from penstock.query.expr import Expr, col, when
from penstock.query.graph import Port
from penstock.query.steps import GroupJoinSpec
from penstock.query.steps.spec import NamedExprs
from penstock.query.types import DataType
from penstock.query.windows import Sliding
from tests.harness import Harness, Row, layout
from tests.reference_aggregates import xxhash64

LEFT = layout({"ts": "timestamp", "k": "int32?", "x": "int64"}, "ts", [ORDER, LATE])
RIGHT = layout({"at": "timestamp", "key": "int32?", "y": "float64?"}, "at", [ORDER, LATE])
PAIR = (("ts", 0, "ts"), ("k", 0, "k"), ("x", 0, "x"), ("at", 1, "at"), ("y", 1, "y"))
AGGREGATES: dict[str, Aggregate] = {"n": count(), "total": sum_("y"), "latest": last("y")}
PLAIN: NamedExprs = tuple((name, col(name)) for name in ("window_end", "k", "x", "n", "total", "latest"))
TYPES = {
    "window_end": "timestamp",
    "k": "int32?",
    "x": "int64",
    "n": "int64",
    "total": "float64?",
    "latest": "float64?",
}


def step(
    window: Sliding | None = None,
    where: Expr | None = None,
    columns: NamedExprs = PLAIN,
    types: dict[str, str] = TYPES,
    **options: Any,
) -> Harness:
    aggregates = tuple(AGGREGATES.items())
    spec = GroupJoinSpec((("k", "key"),), window or Sliding(10, 10), PAIR, where, aggregates, columns)
    output = layout(types, TIME, [TIME, ORDER])
    return Harness(GroupJoin, spec, [LEFT, RIGHT], output, late=LEFT, late_right=RIGHT, **options)


def left(ts: int, k: int | None, x: int, **more: Any) -> Row:
    return {"ts": ts, "k": k, "x": x, ORDER: x, **more}


def right(at: int, key: int | None, y: float | None, **more: Any) -> Row:
    return {"at": at, "key": key, "y": y, ORDER: at, **more}


def run(harness: Harness, ours: list[Row], theirs: list[Row]) -> list[tuple[Any, ...]]:
    harness.feed(theirs, 1)
    harness.feed(ours)
    harness.end()
    names = ("window_end", "k", "x", "n", "total", "latest")
    return sorted((tuple(row[name] for name in names) for row in harness.rows()), key=repr)


def test_every_left_event_comes_out_with_what_matches_it() -> None:
    theirs = [right(3, 1, 5.0), right(1, 1, 2.0), right(2, 2, 9.0), right(11, 1, 7.0), right(4, 1, None)]
    found = run(step(), [left(0, 1, 1), left(9, 2, 2), left(5, 3, 3), left(12, 1, 4)], theirs)
    assert found == [
        (10, 1, 1, 3, 7.0, 5.0),  # counts events; sums and the last pass over nulls
        (10, 2, 2, 1, 9.0, 9.0),
        (10, 3, 3, 0, None, None),
        (20, 1, 4, 1, 7.0, 7.0),
    ]


def test_a_null_key_matches_nothing_but_comes_out() -> None:
    assert run(step(), [left(0, None, 1)], [right(0, None, 2.0)]) == [(10, None, 1, 0, None, None)]


def test_a_condition_compares_both_sides() -> None:
    theirs = [right(time, 1, float(time)) for time in range(6)]
    found = run(step(where=col("at") <= col("ts")), [left(1, 1, 1), left(3, 1, 2)], theirs)
    assert found == [(10, 1, 1, 2, 1.0, 1.0), (10, 1, 2, 4, 6.0, 3.0)]


def test_in_sliding_windows_an_event_comes_once_for_each() -> None:
    found = run(step(Sliding(20, 10)), [left(11, 1, 1)], [right(5, 1, 1.0), right(25, 1, 2.0)])
    assert found == [(20, 1, 1, 1, 1.0, 1.0), (30, 1, 1, 1, 2.0, 2.0)]


def test_results_are_computed_from_event_and_aggregates_and_stand_at_the_events_place() -> None:
    columns: NamedExprs = (("free", col("n") == 0), ("toll", when(col("n") > 0, 0).otherwise(col("x") * 2)))
    harness = step(columns=columns, types={"free": "bool", "toll": "int64"})
    harness.feed([left(0, 1, 4), left(1, 2, 5)])
    harness.feed([right(9, 2, 0.0)], 1)
    harness.watermark(9)
    assert harness.rows() == []
    harness.watermark(10)
    rows = harness.rows()
    assert [(row["free"], row["toll"], row[TIME]) for row in rows] == [(True, 8, 9), (False, 0, 9)]
    assert rows[0][ORDER] == xxhash64((value, DataType.INT64) for value in (0, 4, 0))
    assert harness.operator.open_windows == 0


def test_late_events_of_both_sides_are_left_out_and_offered() -> None:
    harness = step()
    found = run(harness, [left(0, 1, 1), left(1, 1, 2, **{LATE: True})], [right(0, 1, 1.0, **{LATE: True})])
    assert found == [(10, 1, 1, 0, None, None)]
    assert [row["x"] for row in harness.rows(Port.LATE)] == [2]
    assert [row["at"] for row in harness.rows(Port.LATE_RIGHT)] == [0]


def test_many_pairs_are_found_in_portions(monkeypatch: Any) -> None:
    monkeypatch.setattr("penstock.operators.joins.group_join._MOST_AT_ONCE", 7)
    theirs = [right(0, key, 1.0) for key in (1, 1, 1, 1, 1, 2)] + [right(0, 3, 1.0)] * 20
    found = run(step(), [left(0, key, key) for key in (1, 2, 3, 4)], theirs)
    assert [(k, n, total) for _, k, _, n, total, _ in found] == [
        (1, 5, 5.0),
        (2, 1, 1.0),
        (3, 20, 20.0),
        (4, 0, None),
    ]
