import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.memory.layout import LATE, ORDER, SUB, TIME
from penstock.operators.windows.window_aggregate import WindowAggregate
from penstock.query.aggregates import (
    Aggregate,
    count,
    count_distinct,
    median,
    sum_,
    variance,
)
from penstock.query.graph import Port
from penstock.query.steps import WindowAggregateSpec
from penstock.query.types import DataType
from penstock.query.windows import Sliding
from tests.harness import Harness, layout
from tests.reference_aggregates import aggregate, xxhash64
from tests.window_cases import (
    EVENT,
    EVERYTHING,
    INF,
    INPUT,
    NAN,
    aggregate_types,
    assert_same_rows,
    expected_rows,
    run_in_pieces,
    values,
)


def step(
    window: Sliding, aggregates: dict[str, Aggregate], keys: Sequence[str] = ("town",), **options: Any
) -> Harness:
    types = aggregate_types(keys, aggregates)
    spec = WindowAggregateSpec(tuple(keys), window, tuple(aggregates.items()))
    return Harness(WindowAggregate, spec, [INPUT], layout(types, TIME, [TIME, ORDER]), late=INPUT, **options)


def test_counts_per_key_and_window() -> None:
    harness = step(Sliding(10, 10), {"n": count()})
    harness.feed(
        [{"ts": 1, "town": "a"}, {"ts": 9, "town": "a"}, {"ts": 5, "town": "b"}, {"ts": 10, "town": "a"}]
    )
    harness.watermark(9)
    assert harness.rows() == []
    assert harness.operator.open_windows == 3
    harness.watermark(10)
    assert sorted(values(harness.rows(), "town", "window_start", "window_end", "n", TIME)) == [
        ("a", 0, 10, 2, 9),
        ("b", 0, 10, 1, 9),
    ]
    harness.end()
    assert values(harness.rows()[2:], "town", "window_end", "n") == [("a", 20, 1)]
    assert harness.operator.open_windows == 0


def test_windows_before_1970_are_floored() -> None:
    harness = step(Sliding(10, 10), {"n": count()}, keys=())
    harness.feed([{"ts": -1}, {"ts": -10}, {"ts": -11}, {"ts": 0}])
    harness.end()
    rows = values(harness.rows(), "window_start", "window_end", "n", ORDER)
    assert rows == [(-20, -10, 1, 42), (-10, 0, 2, 42), (0, 10, 1, 42)]


def test_null_is_a_key_and_order_is_the_hash_of_the_keys() -> None:
    harness = step(Sliding(10, 10), {"n": count()}, keys=("town", "lane"))
    harness.feed(
        [{"ts": 1, "town": None, "lane": 3}, {"ts": 2, "town": "x", "lane": 3}, {"ts": 3, "lane": 3}]
    )
    harness.end()
    typed = (DataType.STRING, DataType.INT32)
    expected = {
        (town, 3, n, xxhash64(zip((town, 3), typed, strict=True))) for town, n in ((None, 2), ("x", 1))
    }
    rows = values(harness.rows(), "town", "lane", "n", ORDER)
    assert set(rows) == expected
    assert rows == sorted(rows, key=lambda row: row[3])


def test_float_keys_are_compared_by_value() -> None:
    harness = step(Sliding(10, 10), {"n": count()}, keys=("speed", "share"))
    speeds = [0.0, -0.0, NAN, NAN, None, 1.5]
    harness.feed([{"ts": 1, "speed": speed, "share": 2.5} for speed in speeds])
    harness.end()
    found = {str(row["speed"]): (row["share"], row["n"]) for row in harness.rows()}
    assert found == {"0.0": (2.5, 2), "nan": (2.5, 2), "None": (2.5, 1), "1.5": (2.5, 1)}


def test_every_aggregate_of_a_hand_worked_window() -> None:
    harness = step(Sliding(10, 10), EVERYTHING, keys=())
    harness.feed(
        [
            {"ts": 3, ORDER: 7, "town": "b", "lane": 1, "speed": 4.0, "load": 2**62, "share": 1.0},
            {"ts": 1, ORDER: 9, "town": None, "lane": 2, "speed": None, "load": 2**62, "share": NAN},
            {"ts": 1, ORDER: 8, "town": "a", "lane": 2, "speed": 1.0, "load": None, "share": 5.0},
            {"ts": 3, ORDER: 7, SUB: 1, "town": "c", "lane": 5, "speed": 1.0, "load": 2**62, "share": 0.5},
        ]
    )
    harness.end()
    (row,) = harness.rows()
    assert math.isnan(row.pop("share_max"))
    assert row.pop("lane_high") == pytest.approx(4.1)
    assert row.pop("speed_var") == pytest.approx(3.0, rel=1e-12)
    assert row.pop("speed_dev") == pytest.approx(math.sqrt(3.0), rel=1e-12)
    assert row.pop("lane_var") == pytest.approx(3.0, rel=1e-12)
    assert row == {
        "window_start": 0,
        "window_end": 10,
        "n": 4,
        "speeds": 3,
        "loads": 3 * 2**62 - 2**64,
        "speed_sum": 6.0,
        "speed_min": 1.0,
        "speed_max": 4.0,
        "lane_min": 1,
        "lane_max": 5,
        "ts_max": 3,
        "speed_avg": 2.0,
        "lane_avg": 2.5,
        "load_avg": 2.0**62,
        "town_first": "a",
        "town_last": "c",
        "speed_first": 1.0,
        "towns": 3,
        "speeds_distinct": 2,
        "half": 1.0,
        "doubled": 20,
        "fastest": "b",
        "lightest": 4.0,
        "least_lane": 1.0,
        "lanes": "[2,2,1]",
        "fast_shares": "[1.0]",
        "towns_listed": '["a","b"]',
        "fast": 1,
        "seen_loads": None,
        "seen_lane": None,
        "odd_first": "b",
        "fast_towns": 1,
        TIME: 9,
        ORDER: 42,
    }


def test_nothing_but_nulls_gives_null() -> None:
    harness = step(Sliding(10, 10), EVERYTHING, keys=())
    harness.feed([{"ts": 3, "lane": 1, "share": -INF}])
    harness.end()
    (row,) = harness.rows()
    nulls = {name for name, value in row.items() if value is None}
    of_load = {"loads", "load_avg"}
    of_speed = {
        "speed_sum",
        "speed_min",
        "speed_max",
        "speed_avg",
        "speed_var",
        "speed_dev",
        "speed_first",
        "half",
    }
    others = {"lane_var", "town_first", "town_last", "seen_loads", "seen_lane", "odd_first"}
    others |= {"fastest", "lightest", "least_lane", "fast_shares", "towns_listed"}
    assert nulls == of_load | of_speed | others
    assert (row["n"], row["speeds"], row["towns"], row["share_max"]) == (1, 0, 0, -INF)


def test_nan_and_infinity_go_through_sums_as_ieee_has_it() -> None:
    harness = step(Sliding(10, 10), EVERYTHING)
    feeds = {"inf": [1.0, INF], "both": [INF, -INF, 2.0], "nan": [NAN, 1.0], "huge": [1e16, 1.0, -1e16]}
    for town, speeds in feeds.items():
        harness.feed([{"ts": 1, "town": town, "speed": speed} for speed in speeds])
    harness.end()
    found = {row["town"]: row for row in harness.rows()}
    assert found["inf"]["speed_sum"] == found["inf"]["speed_avg"] == INF
    assert math.isnan(found["both"]["speed_sum"])
    assert math.isnan(found["inf"]["speed_var"])
    assert (found["both"]["speed_min"], found["both"]["speed_max"]) == (-INF, INF)
    assert found["nan"]["speed_min"] == 1.0
    assert math.isnan(found["nan"]["speed_max"])
    assert math.isnan(found["nan"]["speed_avg"])
    assert found["nan"]["speeds_distinct"] == 2
    assert math.isnan(found["nan"]["half"])  # halfway between 1 and NaN
    assert found["huge"]["speed_sum"] == 1.0


def test_variance_survives_a_large_mean() -> None:
    harness = step(Sliding(1000, 1000), {"speed_var": variance("speed")}, keys=())
    speeds = [1e9 + index % 3 for index in range(300)]
    harness.feed([{"ts": index, "speed": speed} for index, speed in enumerate(speeds)])
    harness.end()
    expected = aggregate(variance("speed"), speeds, DataType.FLOAT64)
    assert harness.rows()[0]["speed_var"] == pytest.approx(expected, rel=1e-9)


def test_late_events_are_left_out_and_handed_on() -> None:
    harness = step(Sliding(10, 10), {"n": count()})
    harness.feed([{"ts": 1, "town": "a"}, {"ts": 2, "town": "a", LATE: True}, {"ts": 3, "town": "a"}])
    harness.end()
    assert values(harness.rows(), "n") == [(2,)]
    assert values(harness.rows(Port.LATE), "ts", "town", LATE) == [(2, "a", True)]
    assert harness.operator.late_events == 1


def test_sliding_windows_that_the_slide_does_not_divide() -> None:
    # size 5, slide 3: panes of 1; windows [-3,2), [0,5), [3,8), ...
    harness = step(Sliding(5, 3), {"n": count()}, keys=())
    harness.feed([{"ts": 0}, {"ts": 4}])
    harness.watermark(2)
    assert values(harness.rows(), "window_start", "n") == [(-3, 1)]
    assert harness.operator.open_windows == 2
    harness.feed([{"ts": 7}])
    harness.end()
    assert values(harness.rows(), "window_start", "window_end", "n") == [
        (-3, 2, 1),
        (0, 5, 2),
        (3, 8, 2),
        (6, 11, 1),
    ]


def test_a_watermark_that_jumps_far_visits_only_windows_with_events() -> None:
    year_us = 365 * 86_400_000_000
    harness = step(Sliding(2, 1), {"n": count()}, keys=())
    harness.feed([{"ts": -50 * year_us}, {"ts": 50 * year_us}])
    harness.end()
    assert values(harness.rows(), "window_start", "n") == [
        (-50 * year_us - 1, 1),
        (-50 * year_us, 1),
        (50 * year_us - 1, 1),
        (50 * year_us, 1),
    ]


def test_only_columns_that_are_read_are_made() -> None:
    spec = WindowAggregateSpec(("town",), Sliding(10, 10), (("n", count()), ("s", sum_("load"))))
    harness = Harness(WindowAggregate, spec, [INPUT], layout({"n": "int64"}))
    harness.feed([{"ts": 1, "town": "a"}])
    harness.end()
    assert harness.rows() == [{"n": 1}]


def test_the_table_grows_while_events_come_in() -> None:
    aggregates = {"n": count(), "towns": count_distinct("town")}
    harness = step(Sliding(10, 10), aggregates, keys=("load",), block_events=512)
    harness.feed([{"ts": index % 10, "load": index % 700, "town": "x"} for index in range(2100)], cut=False)
    harness.end()
    assert sorted(values(harness.rows(), "load", "n", "towns")) == [(load, 3, 1) for load in range(700)]


@pytest.mark.parametrize("window", [Sliding(10, 10), Sliding(30, 10)])
def test_state_stays_bounded_over_many_windows(window: Sliding) -> None:
    harness = step(window, {"n": count(), "half": median("speed")}, keys=("lane",), block_events=64)
    largest = 0
    for start in range(0, 3000, 10):
        rows = [{"ts": start + index % 10, "lane": index % 40, "speed": 1.0} for index in range(80)]
        harness.feed(rows, cut=False)
        harness.watermark(start)
        if start == 500:
            largest = harness.operator.state_bytes
    assert harness.operator.state_bytes <= largest
    harness.end()
    assert harness.operator.state_bytes < 20_000
    assert harness.operator.open_windows == 0


def test_consumes_nothing_while_rows_wait() -> None:
    harness = step(Sliding(10, 10), {"n": count()}, keys=())
    harness.feed([{"ts": 1}])
    harness.operator.on_watermark(10)
    columns = INPUT.allocate(1)
    assert harness.operator.consume(0, columns, 0, 1) == 0
    assert harness.operator.flush()
    assert harness.operator.consume(0, columns, 0, 1) == 1


# -- against plain Python ------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    st.lists(EVENT, max_size=40),
    st.booleans(),
    st.sampled_from([Sliding(10, 10), Sliding(20, 5), Sliding(7, 3), Sliding(1, 1)]),
    st.sampled_from([(), ("town", "seen"), ("speed",)]),
    st.lists(st.integers(0, 40), max_size=4),
    st.integers(0, 99),
)
def test_agrees_with_plain_python(
    events: list[dict[str, Any]],
    in_order: bool,
    window: Sliding,
    keys: tuple[str, ...],
    cuts: list[int],
    seed: int,
) -> None:
    for order, event in enumerate(events):
        event[ORDER] = order
    if in_order:
        events.sort(key=lambda event: event["ts"])
    harness = step(window, EVERYTHING, keys, seed=seed)
    run_in_pieces(harness, events, cuts)
    assert_same_rows(harness.rows(), keys, expected_rows(window, keys, EVERYTHING, events))
    assert harness.operator.open_windows == 0
