"""The stateful operators one by one, with numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
import xxhash

from lab.workloads.riot import distinct_count, interpolation, second_moment, sliding_regression
from lab.workloads.riot.block_average import BlockAverage
from lab.workloads.riot.distinct_count import DistinctCount, estimated, placed
from lab.workloads.riot.interpolation import Interpolation
from lab.workloads.riot.kalman import KalmanFilter
from lab.workloads.riot.prediction import ErrorEstimate
from lab.workloads.riot.second_moment import SecondMoment, replaced
from lab.workloads.riot.sliding_regression import SlidingRegression, predict
from penstock.query.user_functions import Context, ProcessFunction

Row = dict[str, Any]


def handled(function: ProcessFunction, state: Row, events: list[Row]) -> list[list[Row]]:
    """The rows that each event of one key becomes."""
    context = Context(("key",), state, set())
    return [list(function.on_event(dict(event), context)) for event in events]


def readings(*values: float | None) -> list[Row]:
    return [
        {"message": number, "sensor": "s", "observation": "dust", "value": value}
        for number, value in enumerate(values)
    ]


def values_of(results: list[list[Row]]) -> list[Any]:
    return [row["value"] for rows in results for row in rows]


def test_the_kalman_filter_trusts_readings_less_as_it_learns() -> None:
    # q 0.125, r 0.32, p0 30, x0 0. First: p 30.125, gain 30.125 / 30.445, x 8 · gain, p 0.316637.
    # Second: p 0.441637, gain 0.441637 / 0.761637 = 0.579852, x 7.915914 + 0.579852 · 2.084086.
    # Third: p 0.185553 + 0.125, gain 0.310553 / 0.630553 = 0.492509, x 9.124376 − 0.492509 · 0.124376.
    state = {"begun": False, "estimate": 0.0, "covariance": 0.0}
    results = handled(KalmanFilter(), state, readings(8.0, 10.0, 9.0))
    assert values_of(results) == pytest.approx([8 * 30.125 / 30.445, 9.124376, 9.063120], abs=1e-6)
    assert state["covariance"] == pytest.approx(0.157603, abs=1e-6)
    assert results[0][0] == {"message": 0, "sensor": "s", "observation": "dust", "value": 8 * 30.125 / 30.445}


def ring(size: int) -> Row:
    return {"count": 0, **{f"reading{slot}": 0.0 for slot in range(size)}}


def test_a_line_through_ten_readings_is_drawn_on_for_ten_more() -> None:
    # Nine times 1 and once 11: mean 2; slope (4.5 · 11 − 4.5 · 1) / 82.5 = 6 / 11; 2 + 5.5 · 6 / 11 = 5 is
    # the next and 2 + 10 · 6 / 11 the mean of the ten.
    assert predict([1.0] * 9 + [11.0])[0] == pytest.approx(5.0)
    assert sum(predict([1.0] * 9 + [11.0])) / 10 == pytest.approx(2 + 60 / 11)


def test_a_regression_predicts_once_its_window_is_full_and_then_slides() -> None:
    results = handled(
        SlidingRegression(), ring(10), readings(*[100.0] * 2, *[float(i) for i in range(10)], 19.0)
    )
    assert results[:9] == [[]] * 9
    assert [row["next"] for rows in results[11:12] for row in rows] == [pytest.approx(10.0)]
    # 0 … 9 lie on a line; the mean of 10 … 19 is 14.5.
    assert results[11][0] == {
        "message": 11,
        "sensor": "s",
        "observation": "dust",
        "analysis": "SLR",
        "value": pytest.approx(14.5),
        "next": pytest.approx(10.0),
    }
    # 1 … 9, 19: mean 6.4; slope (Σ (x − 4.5)(x + 1) + 4.5 · 9) / 82.5 = (82.5 + 40.5) / 82.5.
    assert results[12][0]["next"] == pytest.approx(6.4 + 5.5 * 123 / 82.5)
    assert sliding_regression.WINDOW == sliding_regression.HORIZON == 10


def moments() -> Row:
    places = range(second_moment.ITEMS)
    return {"seen": 0, "used": 0} | {f"item{i}": 0.0 for i in places} | {f"count{i}": 0 for i in places}


def test_the_second_moment_is_the_mean_of_what_each_watched_reading_estimates() -> None:
    # 5: 1 · (2 − 1). 5, 5: 2 · (4 − 1). 5, 5, 7: 3 · ((4 − 1) + (2 − 1)) / 2. 5, 5, 7, 5: 4 · (5 + 1) / 2.
    results = handled(SecondMoment(), moments(), readings(5.0, 5.0, 7.0, 5.0))
    assert values_of(results) == [1.0, 6.0, 6.0, 12.0]
    assert results[3][0]["analysis"] == "SOM"


def test_a_new_reading_takes_the_place_of_a_watched_one_when_there_is_no_room() -> None:
    state = moments()
    results = handled(SecondMoment(), state, readings(*[float(i) for i in range(11)], 10.0))
    # Ten counts of one: n · (20 − 10) / 10 = n. Then a count of two: 12 · (22 − 10) / 10.
    assert values_of(results) == [*[float(n) for n in range(1, 12)], pytest.approx(14.4)]
    place = replaced(10.0, 11)
    assert (state[f"item{place}"], state[f"count{place}"]) == (10.0, 2)
    assert sorted(state[f"item{i}"] for i in range(10) if i != place) == [
        float(i) for i in range(10) if i != place
    ]


def test_the_bucket_is_the_end_of_the_hash_and_the_rank_the_zeros_before_it() -> None:
    for name in ("a", "b", "some sensor"):
        digits = f"{xxhash.xxh64_intdigest(name.encode()):064b}"
        rest = digits[:-5]
        assert placed(name) == (int(digits[-5:], 2), len(rest) - len(rest.rstrip("0")))


def test_the_estimate_doubles_with_each_rank_in_all_buckets() -> None:
    # 0.79402 · 32 = 25.4 without any; one rank in every bucket doubles it.
    assert [estimated(total) for total in (0, 32, 64, 16)] == [25, 50, 101, 35]


def test_the_distinct_count_keeps_the_largest_rank_of_each_bucket() -> None:
    state = {"ranks": "", "total": 0}
    names = ["a", "b", "a", "some sensor"]
    events = [{"message": 0, "sensor": name, "observation": "dust", "value": 0.0} for name in names]
    results = handled(DistinctCount(), state, events)
    largest: dict[int, int] = {}
    for name, rows in zip(names, results, strict=True):
        bucket, rank = placed(name)
        largest[bucket] = max(rank, largest.get(bucket, 0))
        assert [row["value"] for row in rows] == [float(estimated(sum(largest.values())))]
    assert state["total"] == sum(ord(rank) - ord("0") for rank in state["ranks"])
    assert len(state["ranks"]) == distinct_count.BUCKETS


def test_the_distinct_count_is_about_right() -> None:
    # LogLog's standard error is 1.30 / √32 = 23 %.
    events = [
        {"message": i, "sensor": f"sensor {i}", "observation": "dust", "value": 0.0} for i in range(2_000)
    ]
    results = handled(DistinctCount(), {"ranks": "", "total": 0}, events + events)
    assert results[-1][0]["value"] == results[1_999][0]["value"] == pytest.approx(2_000, rel=0.5)


def test_a_missing_value_becomes_the_mean_of_the_last_five() -> None:
    results = handled(
        Interpolation(),
        ring(interpolation.WINDOW),
        readings(None, 1.0, 2.0, 3.0, None, None, 4.0, 5.0, 6.0, None),
    )
    assert values_of(results) == [None, 1.0, 2.0, 3.0, 2.0, 2.0, 4.0, 5.0, 6.0, 4.0]


def test_interpolation_leaves_the_source_alone() -> None:
    event = {"observation": "source", "source": "s", "value": None}
    state = ring(interpolation.WINDOW) | {"count": 3}
    assert handled(Interpolation(), state, [event]) == [[event]]
    assert state["count"] == 3


def test_each_five_readings_become_their_mean() -> None:
    events = [
        {"message": number, "sensor": "s", "airquality_raw": value}
        for number, value in enumerate([10.0, 20.0, 30.0, 40.0, 50.0, 1.0, 2.0, 3.0, 4.0, 6.0, 7.0])
    ]
    results = handled(BlockAverage(), {"total": 0.0, "count": 0}, events)
    made = [(row["message"], row["average"]) for rows in results for row in rows]
    assert made == [(4, 30.0), (9, 3.2)]


def estimate(air: float | None, prediction: float | None, average: float | None) -> Row:
    return {"message": 7, "sensor": "s", "airquality_raw": air, "prediction": prediction, "average": average}


def test_an_error_is_relative_to_the_latest_average() -> None:
    results = handled(
        ErrorEstimate(),
        {"average": None},
        [
            estimate(30.0, 35.0, None),  # nothing before the first average
            estimate(None, None, 20.0),
            estimate(30.0, 35.0, None),  # −5 / 20
            estimate(None, None, 40.0),
            estimate(50.0, 35.0, None),  # 15 / 40
            estimate(None, None, 0.0),
            estimate(50.0, 35.0, None),
        ],
    )
    assert [len(rows) for rows in results] == [0, 0, 1, 0, 1, 0, 1]
    assert values_of(results) == [-0.25, 0.375, None]
    assert results[2] == [{"message": 7, "sensor": "s", "analysis": "ERR", "value": -0.25}]
