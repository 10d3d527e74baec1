"""Joins: keys, collisions of names, and bounds."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.query.expr import col
from penstock.query.steps import CoGroupSpec, IntervalJoinSpec, WindowJoinSpec
from penstock.query.types import Schema
from penstock.query.windows import session, tumbling
from tests.query.stream.streams import CARS, Traffic, fails

MINUTE = tumbling("1m")


@pytest.fixture
def traffic() -> Traffic:
    return Traffic()


def test_a_window_join(traffic: Traffic) -> None:
    joined = traffic.cars.join(traffic.tolls, on={"id": "car"}, window=MINUTE)
    assert joined.schema == Schema(
        window_start="timestamp",
        window_end="timestamp",
        ts="timestamp",
        id="int64",
        lane="int32",
        speed="float64?",
        ts_right="timestamp",
        paid="float32?",
    )
    assert joined.time_column is None
    spec = joined._feed.step.spec
    assert isinstance(spec, WindowJoinSpec)
    assert spec.on == (("id", "car"),)
    assert spec.columns[0] == ("ts", 0, "ts")
    assert spec.columns[-2:] == (("ts_right", 1, "ts"), ("paid", 1, "paid"))


def test_a_join_with_itself(traffic: Traffic) -> None:
    joined = traffic.cars.join(traffic.cars, on=["id", "lane"], window=MINUTE)
    assert joined.schema.names[2:] == ("ts", "id", "lane", "speed", "ts_right", "speed_right")


def test_a_right_key_may_be_called_like_another_left_column(traffic: Traffic) -> None:
    right = traffic.tolls.select(lane=col("car"), id=col("paid"))
    joined = traffic.cars.interval_join(right, on={"id": "lane"}, lower="-5s", upper="1m")
    assert joined.schema.names == ("ts", "id", "lane", "speed", "id_right")


def test_a_window_on_the_right_gets_a_suffix(traffic: Traffic) -> None:
    right = traffic.tolls.rename(ts="window_start")
    joined = traffic.cars.join(right, on={"id": "car"}, window=MINUTE)
    assert joined.schema.names[-2:] == ("window_start_right", "paid")


def test_an_interval_join(traffic: Traffic) -> None:
    joined = traffic.cars.interval_join(traffic.tolls, on={"id": "car"}, lower="-5s", upper="10s")
    assert joined.schema.names == ("ts", "id", "lane", "speed", "ts_right", "paid")
    assert joined.time_column is None
    spec = joined._feed.step.spec
    assert isinstance(spec, IntervalJoinSpec)
    assert (spec.lower_us, spec.upper_us) == (-5_000_000, 10_000_000)
    traffic.cars.interval_join(traffic.tolls, on={"id": "car"}, lower="0s", upper="0s")


def test_a_cogroup(traffic: Traffic) -> None:
    def both(group: Any) -> list[dict[str, Any]]:
        return [{"n": len(group.left) + len(group.right)}]

    grouped = traffic.cars.cogroup(
        traffic.tolls, on={"id": "car"}, window=MINUTE, function=both, output={"n": "int64"}
    )
    assert grouped.schema == Schema(n="int64")
    assert grouped.time_column is None
    assert isinstance(grouped._feed.step.spec, CoGroupSpec)
    assert grouped.late("right").schema == traffic.tolls.schema


def test_key_errors(traffic: Traffic) -> None:
    cars, tolls = traffic.cars, traffic.tolls

    def join(on: Any) -> Any:
        return lambda: cars.join(tolls, on=on, window=MINUTE)

    with pytest.raises(Exception, match=r"unknown column 'idd'.*did you mean 'id'"):
        join({"idd": "car"})()
    with pytest.raises(Exception, match=r"unknown column 'cra'.*in the other stream.*did you mean 'car'"):
        join({"id": "cra"})()
    with pytest.raises(Exception, match=r"key types do not match.*'lane' is int32, 'car' of the other.*cast"):
        join({"lane": "car"})()
    for on in ("", [], {}, None, 3, [3], {"id": 3}):
        with pytest.raises(Exception, match=r"a join needs keys|unknown column ''"):
            join(on)()
    with pytest.raises(Exception, match="a key is named twice"):
        join(["id", "id"])()
    with pytest.raises(Exception, match="a key is named twice"):
        join({"id": "car", "lane": "car"})()


def test_errors(traffic: Traffic) -> None:
    cars, tolls = traffic.cars, traffic.tolls
    on = {"id": "car"}
    fails(lambda: cars.join(None, on=on, window=MINUTE), "not a stream", "None", step="join")  # type: ignore[arg-type]
    fails(lambda: cars.join(tolls, on=on, window=session("1s")), "takes no session window", step="join")
    fails(lambda: cars.join(tolls, on=on, window="1m"), "not a window", "tumbling('10s')", step="join")  # type: ignore[arg-type]
    fails(
        lambda: cars.rename(lane="window_end").join(tolls, on=on, window=MINUTE),
        "column 'window_end' is taken by the window",
        "rename",
        step="join",
    )
    fails(
        lambda: cars.rename(lane="ts_right").join(tolls, on=on, window=MINUTE),
        "column 'ts' is on both sides, and so is 'ts_right'",
        step="join",
    )
    fails(
        lambda: cars.interval_join(tolls, on=on, lower="5s", upper="1s"),
        "lower bound must not exceed the upper",
        "lower '5s', upper '1s'",
        step="interval_join",
    )
    fails(
        lambda: cars.interval_join(tolls, on=on, lower="soon", upper="1s"),
        "lower bound is not a length of time",
        step="interval_join",
    )
    fails(
        lambda: cars.cogroup(tolls, on=on, window=MINUTE, function=3, output=CARS),  # type: ignore[arg-type]
        "cogroup needs a function",
        step="cogroup",
    )
    fails(
        lambda: cars.cogroup(tolls, on=on, window=session("1s"), function=print, output=CARS),  # type: ignore[arg-type]
        "takes no session window",
        step="cogroup",
    )
    fails(
        lambda: cars.cogroup(tolls, on=on, window=MINUTE, function=print, output={}),  # type: ignore[arg-type]
        "at least one column",
        step="cogroup",
    )
    other = Traffic().tolls
    fails(
        lambda: cars.join(other, on=on, window=MINUTE),
        "streams of two apps cannot be mixed",
        "make both sources in one app",
        step="join",
    )
    fails(
        lambda: cars.bad_records().join(tolls, on=on, window=MINUTE),
        "bad records have no event time",
        step="join",
    )
    fails(
        lambda: cars.join(tolls.bad_records(), on=on, window=MINUTE),
        "bad records have no event time",
        step="join",
    )
