"""Aggregates of aggregates: rows per further key, conditions on all levels, and the outer key's hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.memory.layout import LATE, ORDER, TIME
from penstock.operators.windows.nested_aggregate import NestedAggregate
from penstock.query.aggregates import Aggregate, avg, count, max_
from penstock.query.expr import Expr, col
from penstock.query.graph import Port
from penstock.query.steps import NestedAggregateSpec
from penstock.query.types import DataType
from penstock.query.windows import Sliding
from penstock.state.tables import HASH
from tests.harness import Harness, Row, layout
from tests.reference_aggregates import xxhash64

INPUT = layout({"ts": "timestamp", "town": "string?", "car": "int32", "speed": "int32"}, "ts", [ORDER, LATE])


def step(
    outer: dict[str, Aggregate],
    inner: dict[str, Aggregate] | None = None,
    *,
    keys: Sequence[str] = ("town",),
    window: Sliding | None = None,
    where: Expr | None = None,
    having: Expr | None = None,
    keep: Expr | None = None,
    **options: Any,
) -> Harness:
    spec = NestedAggregateSpec(
        tuple(keys),
        window or Sliding(10, 10),
        ("car",),
        tuple((inner or {}).items()),
        tuple(outer.items()),
        where,
        having,
        keep,
    )
    types = {"town": "string?"} if keys else {}
    bounds = {"window_start": "timestamp", "window_end": "timestamp"}
    made = {name: "float64" if one.function.name == "avg" else "int64" for name, one in outer.items()}
    output = layout({**types, **bounds, **made}, TIME, [TIME, ORDER])
    return Harness(NestedAggregate, spec, [INPUT], output, late=INPUT, **options)


def event(ts: int, car: int, speed: int = 1, town: str | None = "a", **more: Any) -> Row:
    return {"ts": ts, "car": car, "speed": speed, "town": town, **more}


def results(harness: Harness, *names: str) -> list[tuple[Any, ...]]:
    harness.end()
    return sorted((tuple(row[name] for name in names) for row in harness.rows()), key=repr)


def test_the_mean_of_means_weighs_every_inner_row_alike() -> None:
    harness = step({"speed": avg("speed"), "cars": count()}, {"speed": avg("speed")})
    harness.feed([event(0, 1, 10), event(3, 1, 20), event(4, 1, 30), event(9, 2, 60), event(5, 7, 5, "b")])
    # car 1 drives 20 on average, car 2 drives 60; the mean of the four reports would be 30
    assert results(harness, "town", "window_end", "speed", "cars") == [("a", 10, 40.0, 2), ("b", 10, 5.0, 1)]


def test_without_inner_aggregates_rows_are_distinct_values() -> None:
    harness = step({"cars": count()})
    harness.feed([event(0, 1), event(1, 1), event(2, 2), event(10, 1), event(3, 3, town=None)])
    found = [("a", 0, 2), ("a", 10, 1), (None, 0, 1)]
    assert results(harness, "town", "window_start", "cars") == sorted(found, key=repr)


def test_conditions_choose_events_then_rows_then_results() -> None:
    harness = step(
        {"cars": count()},
        {"stops": count()},
        where=col("speed") == 0,
        having=col("stops") >= 2,
        keep=col("cars") >= 2,
    )
    harness.feed([event(time, car, 0) for time in (0, 1) for car in (1, 2)])  # two cars, two stops each
    harness.feed([event(2, 3, 0), event(3, 3, 9)])  # one stop
    harness.feed([event(time, 4, 0, "b") for time in (0, 1, 2)])  # one car only
    assert results(harness, "town", "cars") == [("a", 2)]


def test_inner_rows_of_a_sliding_window_are_put_together_from_all_its_panes() -> None:
    harness = step({"most": max_("n"), "cars": count()}, {"n": count()}, window=Sliding(20, 10), keys=())
    harness.feed([event(1, 1), event(11, 1), event(12, 2), event(21, 1)])
    assert results(harness, "window_start", "most", "cars") == [
        (-10, 1, 1),
        (0, 2, 2),
        (10, 2, 2),
        (20, 1, 1),
    ]


def test_rows_and_state_are_known_by_the_outer_key() -> None:
    harness = step({"cars": count()})
    harness.feed([event(0, car) for car in range(20)])
    (table,) = harness.operator.export_state().values()
    hashed = xxhash64([("a", DataType.STRING)])
    assert set(table.column(HASH).to_pylist()) == {hashed}
    assert len(table) == 20
    harness.end()
    assert [(row[ORDER], row[TIME]) for row in harness.rows()] == [(hashed, 9)]


def test_late_events_are_left_out_and_offered() -> None:
    harness = step({"cars": count()})
    harness.feed([event(0, 1), event(1, 2, **{LATE: True})])
    assert results(harness, "cars") == [(1,)]
    assert [row["car"] for row in harness.rows(Port.LATE)] == [2]


def test_more_groups_than_fit_into_a_cache_are_counted_exactly() -> None:
    cars = np.random.default_rng(7).integers(0, 60_000, 80_000).tolist()
    harness = step({"cars": count(), "reports": max_("n")}, {"n": count()}, keys=(), block_events=64)
    harness.feed([event(place % 10, car) for place, car in enumerate(cars)], cut=False)
    most = int(np.bincount(cars).max())
    assert results(harness, "cars", "reports") == [(len(set(cars)), most)]
