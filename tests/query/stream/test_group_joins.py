"""Group joins as written: names, types, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.query.aggregates import avg, count, sum_
from penstock.query.errors import QueryError
from penstock.query.expr import col
from penstock.query.steps import GroupJoinSpec
from penstock.query.types import Schema
from penstock.query.windows import session, tumbling
from tests.query.stream.streams import Traffic

MINUTE = tumbling("1m")


def test_aggregates_are_null_without_a_match_and_counts_are_not() -> None:
    traffic = Traffic()
    cars, tolls = traffic.cars, traffic.tolls
    made = cars.group_join(tolls, {"id": "car"}, MINUTE, {"n": count(), "paid": sum_("paid")})
    assert isinstance(made._feed.step.spec, GroupJoinSpec)
    assert [str(made.schema[name]) for name in ("n", "paid")] == ["n: int64", "paid: float64?"]
    assert made.schema.names[:2] == ("window_start", "window_end")


def test_select_computes_the_result() -> None:
    traffic = Traffic()
    cars, tolls = traffic.cars, traffic.tolls
    chosen = ["id", {"free": col("n") == 0}]
    where = col("ts_right") > col("ts")
    made = cars.group_join(tolls, {"id": "car"}, MINUTE, {"n": count()}, where=where, select=chosen)
    assert made.schema == Schema(id="int64", free="bool")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"aggregates": {}}, "group_join needs an aggregate"),
        ({"aggregates": {"lane": count()}}, "column 'lane' is there already"),
        ({"aggregates": {"n": avg("speedy")}}, "unknown column 'speedy'"),
        ({"aggregates": {"n": 1}}, "not an aggregate"),
        ({"on": {"lane": "car"}}, "key types do not match"),
        ({"window": session("1m")}, "a group join takes no session window"),
        ({"where": col("paid")}, "a condition must be true or false"),
        ({"select": ["paid"]}, "unknown column 'paid'"),
        ({"select": []}, "select needs a column"),
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, Any], message: str) -> None:
    traffic = Traffic()
    cars, tolls = traffic.cars, traffic.tolls
    given: dict[str, Any] = {"on": {"id": "car"}, "window": MINUTE, "aggregates": {"n": count()}}
    with pytest.raises(QueryError, match=message):
        cars.group_join(tolls, **given | changed)


def test_a_column_that_the_window_takes_needs_a_selection() -> None:
    traffic = Traffic()
    cars, tolls = traffic.cars, traffic.tolls
    windowed = cars.key_by("id").window(MINUTE).agg(cars=count())
    with pytest.raises(QueryError, match="column 'window_start' is taken by the window"):
        windowed.group_join(tolls, {"id": "car"}, MINUTE, {"n": count()})
    chosen = windowed.group_join(tolls, {"id": "car"}, MINUTE, {"n": count()}, select=["window_start", "n"])
    assert chosen.schema.names == ("window_start", "n")
