"""Windows by the clocks of a place: days of 23 and 25 hours, offsets, and every step that has windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.memory.layout import ORDER
from penstock.operators.windows.wall_clock import WallClock
from penstock.query.aggregates import count
from penstock.query.expr import col
from penstock.query.windows import Sliding, sliding, tumbling
from penstock.query.windows.clock import WindowClock
from tests.operators.windows.test_window_aggregate import step
from tests.reference import run_reference
from tests.reference_aggregates import _first_shown, _local, windows_over
from tests.window_cases import EVENT, assert_same_rows, expected_rows, run_in_pieces, values

HOUR = 3_600_000_000
#: Zones that put clocks back and forward, by an hour and by half of one, that skipped a day, and neither.
ZONES = ["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "America/New_York", "Asia/Kolkata", "UTC"]
#: Near where they did.
NEAR = [datetime(2024, 3, 31), datetime(2024, 10, 27), datetime(2011, 12, 30), datetime(2024, 4, 7)]

moments = st.builds(
    lambda near, hours, us: _us(near) + hours * HOUR + us,
    st.sampled_from(NEAR),
    st.integers(-60, 60),
    st.sampled_from([0, -1, 1]) | st.integers(0, HOUR),
)


def _us(time: datetime, zone: str = "UTC") -> int:
    moment = time if time.tzinfo is not None else time.replace(tzinfo=ZoneInfo(zone))
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("day", "hours"),
    [(datetime(2024, 3, 31), 23), (datetime(2024, 10, 27), 25), (datetime(2024, 6, 1), 24)],
)
def test_a_day_in_berlin_has_as_many_hours_as_its_clocks_show(day: datetime, hours: int) -> None:
    harness = step(tumbling("1d", tz="Europe/Berlin"), {"n": count()}, keys=())
    start = _us(day, "Europe/Berlin")
    harness.feed([{"ts": start + hour * HOUR} for hour in range(-1, hours + 1)])
    harness.watermark(start + hours * HOUR - 1)
    assert values(harness.rows(), "n", "window_end") == [(1, start)]
    harness.watermark(start + hours * HOUR)
    assert values(harness.rows()[1:], "n", "window_start", "window_end") == [
        (hours, start, start + hours * HOUR)
    ]


def test_an_hour_that_comes_twice_is_one_window() -> None:
    first = _us(datetime(2024, 10, 27, 0))  # 2 o'clock in Berlin, the first time
    window = tumbling("1h", tz="Europe/Berlin")
    assert windows_over([first + HOUR], window) == [(first, first + 2 * HOUR)]
    clock = WallClock(window.clock)
    assert clock.wall(first + HOUR) == clock.wall(first + 2 * HOUR) - 1


def test_an_offset_moves_the_bounds() -> None:
    harness = step(tumbling("1d", offset="6h"), {"n": count()}, keys=())
    harness.feed([{"ts": 5 * HOUR}, {"ts": 6 * HOUR}, {"ts": 30 * HOUR - 1}])
    harness.end()
    assert values(harness.rows(), "n", "window_start") == [(1, -18 * HOUR), (2, 6 * HOUR)]
    assert tumbling("1d", offset="30h") == tumbling("1d", offset="6h") != tumbling("1d")
    assert str(sliding("1d", every="1h", offset="6h", tz="Asia/Kolkata")) == (
        "sliding 1d every 1h in Asia/Kolkata"
    )


@pytest.mark.parametrize("zone", ZONES)
@settings(max_examples=60)
@given(times=st.lists(moments, min_size=1, max_size=20))
def test_the_tables_say_what_clocks_show(zone: str, times: list[int]) -> None:
    clock, place = WallClock(WindowClock(0, zone)), ZoneInfo(zone)
    walls = clock.wall(np.array(times))
    for time, wall in zip(times, walls.tolist(), strict=True):
        assert clock.wall(time) == wall >= _local(time, place)  # it stands still when they are put back
        shown = clock.instants(wall)
        assert shown <= time
        assert clock.wall(shown) == wall
        assert clock.instants(time) == _first_shown(time, place)
    assert clock.instants(np.array(times)).tolist() == [clock.instants(time) for time in times]
    assert np.array_equal(np.sort(walls), clock.wall(np.sort(times)))


WINDOWS = [
    tumbling("1d", tz="Europe/Berlin"),
    sliding("1d", every="8h", tz="Australia/Lord_Howe", offset="2h"),
    tumbling("1h", tz="Europe/Berlin", offset="20m"),
    sliding("2d", every="1d", tz="Pacific/Apia"),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(max_examples=25)
@given(
    st.lists(st.tuples(EVENT, moments), max_size=30),
    st.lists(st.integers(0, 30), max_size=4),
    st.integers(0, 99),
)
def test_aggregates_agree_with_plain_python(
    window: Sliding, drawn: list[tuple[dict[str, Any], int]], cuts: list[int], seed: int
) -> None:
    events = [{**event, "ts": time, ORDER: order} for order, (event, time) in enumerate(drawn)]
    harness = step(window, {"n": count(), "fast": count(where=col("speed") > 0.0)}, ["lane"], seed=seed)
    run_in_pieces(harness, events, cuts)
    expected = expected_rows(
        window, ["lane"], {"n": count(), "fast": count(where=col("speed") > 0.0)}, events
    )
    assert_same_rows(harness.rows(), ["lane"], expected)


def _app(window: Sliding, seed: int) -> tuple[ps.App, dict[str, Any], dict[str, list[list[dict[str, Any]]]]]:
    draw, inputs, streams = np.random.default_rng(seed), {}, []
    app = ps.App("clocks")
    for name in ("left", "right"):
        near = draw.choice([_us(one) for one in NEAR], 60)
        times = np.sort(near + draw.integers(-50 * HOUR, 50 * HOUR, 60)).tolist()
        rows = [{"ts": time, "k": number % 2, "n": number} for number, time in enumerate(times)]
        inputs[name] = [rows]
        memory = ps.sources.Rows(rows, schema={"ts": "timestamp", "k": "int32", "n": "int64"})
        streams.append(app.source(name, memory, event_time="ts"))
    left, right = streams
    keyed = left.key_by("k").window(window)
    queries = {
        "agg": keyed.agg(n=count(), first=ps.first("n")),
        "per": keyed.per("n", seen=count()).agg(rows=count()),
        "top": keyed.top(2, by="n"),
        "join": left.join(right, on="k", window=window),
        "cogroup": left.cogroup(right, "k", window, _sizes, output={"k": "int32", "n": "int64"}),
        "group_join": left.group_join(right, on="k", window=window, aggregates={"m": count()}),
    }
    sinks = {name: ps.sinks.Memory() for name in queries}
    for name, stream in queries.items():
        app.sink(name, stream, sinks[name])
    return app, sinks, inputs


def _sizes(group: ps.Group) -> list[dict[str, Any]]:
    return [{"k": group.key[0], "n": 100 * len(group.left) + len(group.right)}]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_every_step_with_windows_gives_the_rows_of_the_reference(window: Sliding) -> None:
    app, sinks, inputs = _app(window, seed=5)
    app.run(on=ps.Node(workers=1))
    expected = run_reference(app.graph(), inputs)
    for name, sink in sinks.items():
        assert _counted(sink.rows()) == _counted(expected[name]), name
        assert sink.rows()


def _counted(rows: list[dict[str, Any]]) -> list[str]:
    def plain(value: Any) -> Any:
        return _us(value) if isinstance(value, datetime) else value

    return sorted(repr(sorted((name, plain(value)) for name, value in row.items())) for row in rows)
