"""Keyed and windowed streams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from penstock.query.aggregates import avg, count, max_
from penstock.query.explain import describe
from penstock.query.expr import col
from penstock.query.steps import DeduplicateSpec, ProcessSpec, WindowAggregateSpec, WindowTopSpec
from penstock.query.stream.keyed import KeyedStream
from penstock.query.stream.stream import Stream
from penstock.query.types import Schema
from penstock.query.user_functions import Context, ProcessFunction
from penstock.query.windows import session, sliding, tumbling
from tests.query.stream.streams import CARS, Traffic, fails


class Echo(ProcessFunction):
    def on_event(self, event: dict[str, Any], context: Context) -> Iterable[dict[str, Any]]:
        return [event]


@pytest.fixture
def cars() -> Stream:
    return Traffic().cars


def test_aggregates_per_key_and_window(cars: Stream) -> None:
    result = cars.key_by("lane", "speed").window(tumbling("1s")).agg({"name": count()}, top=max_("speed"))
    assert result.schema == Schema(
        lane="int32",
        speed="float64?",
        window_start="timestamp",
        window_end="timestamp",
        name="int64",
        top="float64?",
    )
    assert result.time_column is None
    assert type(result) is Stream
    spec = result._feed.step.spec
    assert isinstance(spec, WindowAggregateSpec)
    assert spec.keys == ("lane", "speed")


def test_windows_without_keys(cars: Stream) -> None:
    for window in (tumbling("1s"), sliding("4s", every="1s"), session("5s")):
        result = cars.window(window).agg(n=count())
        assert result.schema == Schema(window_start="timestamp", window_end="timestamp", n="int64")


def test_top_adds_a_rank(cars: Stream) -> None:
    result = cars.key_by("lane").window(tumbling("1s")).top(3, by=col("speed") * -1, descending=False)
    assert result.schema.names == ("window_start", "window_end", "rank", *CARS.names)
    assert str(result.schema["rank"]) == "rank: int32"
    assert result.time_column is None
    spec = result._feed.step.spec
    assert isinstance(spec, WindowTopSpec)
    assert (spec.keys, spec.k, spec.descending) == (("lane",), 3, False)
    assert cars.window(tumbling("1s")).top(1, by="ts").schema["rank"]


def test_top_by_several_columns_says_each_direction(cars: Stream) -> None:
    both = cars.window(tumbling("1s")).top(3, ["speed", "id"], [True, False], ties=True)
    assert describe(both._feed.step.spec) == "top 3 with ties, tumbling 1s: largest speed, then smallest id"
    down = cars.window(tumbling("1s")).top(3, ["speed", "id"])._feed.step.spec
    assert isinstance(down, WindowTopSpec)
    assert [descending for _, descending in down.ranking] == [True, True]


def test_process_declares_output_and_state(cars: Stream) -> None:
    result = cars.key_by("lane").process(Echo(), output={"x": "int64"}, state={"seen": "int64?"})
    assert result.schema == Schema(x="int64")
    assert result.time_column is None
    spec = result._feed.step.spec
    assert isinstance(spec, ProcessSpec)
    assert spec.state == Schema(seen="int64?")
    assert cars.key_by("lane").process(Echo(), output={"x": "int64"})._feed.step.spec.state == Schema()


def test_deduplicate_by_the_keys_and_more(cars: Stream) -> None:
    def keys(stream: Stream) -> tuple[str, ...]:
        spec = stream._feed.step.spec
        assert isinstance(spec, DeduplicateSpec)
        return spec.keys

    assert keys(cars.key_by("lane").deduplicate()) == ("lane",)
    assert keys(cars.key_by("lane").deduplicate("id", "lane")) == ("lane", "id")
    assert keys(cars.deduplicate("id")) == ("id",)


def test_steps_that_hand_the_keys_on_stay_keyed(cars: Stream) -> None:
    keyed = cars.key_by("lane")
    for stream in (
        keyed.filter(col("speed") > 3),
        keyed.with_columns(x=1),
        keyed.select("lane", "speed"),
        keyed.drop("id"),
        keyed.lookup({"lane": [1], "road": ["A1"]}, on="lane"),
        keyed.explode([dict(x=1), dict(x=2)], keep="lane"),
        keyed.deduplicate(),
    ):
        assert isinstance(stream, KeyedStream)
        assert stream.keys == ("lane",)
    assert keyed.rename(lane="track").keys == ("track",)
    assert keyed.filter(col("speed") > 3).window(tumbling("1s")).agg(n=count()).schema.names[0] == "lane"


def test_steps_that_make_new_events_are_not_keyed(cars: Stream) -> None:
    keyed = cars.key_by("lane")
    for stream in (
        keyed.flat_map(lambda event: [event], output=CARS),
        keyed.batch(lambda columns: columns, output=CARS),
        keyed.union(cars),
        keyed.window(tumbling("1s")).agg(n=count()),
        keyed.join(cars, on="id", window=tumbling("1s")),
    ):
        assert type(stream) is Stream


def test_losing_a_key_is_an_error(cars: Stream) -> None:
    keyed = cars.key_by("lane")
    fails(lambda: keyed.select("speed"), "keyed by 'lane'", "key_by after", step="select")
    fails(lambda: keyed.drop("lane"), "keyed by 'lane'", step="drop")
    fails(lambda: keyed.with_columns(lane=col("lane") + 1), "keyed by 'lane'", step="with_columns")
    fails(lambda: keyed.explode([dict(x=1)]), "keyed by 'lane'", step="explode")


def test_a_window_says_what_it_is(cars: Stream) -> None:
    assert repr(cars.key_by("lane").window(tumbling("1s"))) == "<WindowedStream tumbling 1s by lane>"
    assert repr(cars.window(session("1s"))) == "<WindowedStream session 1s>"


def test_windows_follow_windows(cars: Stream) -> None:
    per_lane = cars.key_by("lane").window(tumbling("1s")).agg(n=count())
    again = per_lane.window(tumbling("10s")).agg(mean=avg("n"))
    assert again.schema.names == ("window_start", "window_end", "mean")
