"""Windows with rows per further key: what they give, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.query.aggregates import avg, count, first, max_
from penstock.query.errors import QueryError
from penstock.query.expr import col
from penstock.query.steps import NestedAggregateSpec
from penstock.query.types import Schema
from penstock.query.windows import session, sliding, tumbling
from tests.query.stream.streams import Traffic


def test_results_have_the_keys_the_bounds_and_the_outer_aggregates() -> None:
    grouped = Traffic().cars.key_by("lane").window(sliding("2m", every="30s")).per("id", n=count())
    made = grouped.agg(cars=count(), most=max_("n"), having=col("cars") > 1)
    assert isinstance(made._feed.step.spec, NestedAggregateSpec)
    assert made.schema == Schema(
        lane="int32", window_start="timestamp", window_end="timestamp", cars="int64", most="int64"
    )
    assert grouped.agg(cars=count(), bounds=False).schema == Schema(lane="int32", cars="int64")
    assert repr(grouped) == "<GroupedWindow sliding 2m every 30s by lane per id>"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda w: w.per(), "per needs a column"),
        (lambda w: w.per("sped"), "unknown column 'sped'"),
        (lambda w: w.per("lane"), "column 'lane' is a key already"),
        (lambda w: w.per("id", id=count()), "column 'id' is taken by a key"),
        (lambda w: w.per("id", n=3), "not an aggregate"),
        (lambda w: w.per("id", where=col("speed")), "a condition must be true or false"),
        (lambda w: w.per("id", n=count(), having=col("speed") > 1), "unknown column 'speed'"),
        (lambda w: w.per("id").agg(), "agg needs an aggregate"),
        (lambda w: w.per("id").agg(x=avg("speed")), "unknown column 'speed'"),
        (lambda w: w.per("id", s=avg("speed")).agg(x=first("s")), "first needs an order, and the rows"),
        (lambda w: w.per("id").agg(n=count(), having=col("m") > 1), "unknown column 'm'"),
    ],
)
def test_what_does_not_fit_is_refused(build: Any, message: str) -> None:
    windowed = Traffic().cars.key_by("lane").window(tumbling("1m"))
    with pytest.raises(QueryError, match=message):
        build(windowed)


def test_sessions_are_refused() -> None:
    with pytest.raises(QueryError, match="per takes no session window"):
        Traffic().cars.window(session("1m")).per("id")
