"""The position reports: consistent cars, known shares, and no dependence on how reads are cut."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lab.workloads.linear_road.data import (
    FEET_PER_MPH,
    FEET_PER_SEGMENT,
    FIELDS,
    REPORT_S,
    ROAD_FT,
    LinearRoadEvents,
    LinearRoadSettings,
)

Columns = dict[str, NDArray[np.int64]]


def read(chosen: LinearRoadSettings, offset: int, *lengths: int) -> Columns:
    columns = {name: np.full(sum(lengths), -9, np.int64) for name, _ in FIELDS}
    events = LinearRoadEvents(chosen)
    start = 0
    for n in lengths:
        events.fill(offset + start, n, columns, start)
        start += n
    return columns


def reports(columns: Columns) -> Columns:
    is_report = columns["type"] == 0
    return {name: column[is_report] for name, column in columns.items()}


@given(
    st.integers(0, 2**40),
    st.lists(st.integers(0, 120), min_size=1, max_size=6),
    st.integers(1, 5000),
    st.integers(1, 5),
    st.integers(0, 2**32),
)
@settings(max_examples=60)
def test_records_do_not_depend_on_how_reads_are_cut(
    offset: int, lengths: list[int], cars: int, expressways: int, seed: int
) -> None:
    chosen = LinearRoadSettings(seed=seed, cars=cars, expressways=expressways, accident_share=0.1)
    whole, cut = read(chosen, offset, sum(lengths)), read(chosen, offset, *lengths)
    for name, _ in FIELDS:
        np.testing.assert_array_equal(whole[name], cut[name], err_msg=name)


def test_every_hundredth_record_is_a_request_with_the_fields_of_its_type() -> None:
    columns = read(LinearRoadSettings(cars=700), 0, 30_000)
    places = np.flatnonzero(columns["type"] != 0)
    np.testing.assert_array_equal(places, np.arange(99, 30_000, 100))
    used = {
        2: {"vid", "qid"},
        3: {"vid", "xway", "qid", "day"},
        4: {"vid", "xway", "qid", "s_init", "s_end", "dow", "tod"},
    }
    for kind, names in used.items():
        rows = columns["type"] == kind
        assert 60 < rows.sum() < 140  # a third of 300 each
        for name, _ in FIELDS[3:]:
            assert ((columns[name][rows] >= 0) == (name in names)).all(), (kind, name)
    for name in ("qid", "s_init", "s_end", "dow", "tod", "day"):
        assert (reports(columns)[name] == -1).all()


def test_time_never_goes_back_and_a_place_reports_every_thirty_seconds() -> None:
    chosen = LinearRoadSettings(cars=50, expressways=2, base_us=5_000_000)
    columns = read(chosen, 0, 20_000)
    assert (np.diff(columns["time_s"]) >= 0).all()
    np.testing.assert_array_equal(columns["ts"], 5_000_000 + 1_000_000 * columns["time_s"])
    times = defaultdict(list)
    found = reports(columns)
    for vid, time in zip(found["vid"].tolist(), found["time_s"].tolist(), strict=True):
        times[vid % 100].append(time)
    assert len(times) == 100
    assert all((np.diff(seen) == REPORT_S).all() for seen in times.values())
    assert chosen.events_per_second == pytest.approx(20_000 / columns["time_s"][-1], rel=0.01)


def test_cars_move_by_their_speed_along_one_direction_and_come_back() -> None:
    found = reports(read(LinearRoadSettings(cars=20, expressways=3, accident_share=0.05), 0, 60_000))
    np.testing.assert_array_equal(found["seg"], found["pos"] // FEET_PER_SEGMENT)
    assert found["pos"].min() >= 0
    assert found["pos"].max() < ROAD_FT
    assert set(found["xway"].tolist()) == {0, 1, 2}
    trips = 0
    for vid in np.unique(found["vid"]):
        car = {name: column[found["vid"] == vid] for name, column in found.items()}
        for leg in np.split(np.arange(len(car["pos"])), np.flatnonzero(car["lane"] == 0)):
            if not len(leg):
                continue
            trips += 1
            towards = np.where(car["dir"][leg] == 0, 1, -1)
            moved = np.diff(car["pos"][leg]) * towards[1:]
            np.testing.assert_array_equal(moved, FEET_PER_MPH * car["speed"][leg][1:])
            assert len({*car["xway"][leg].tolist()}) == len({*car["dir"][leg].tolist()}) == 1
            lanes = car["lane"][leg]
            assert ((lanes[1:-1] >= 1) & (lanes[1:-1] <= 3)).all()
            assert (np.diff(car["time_s"][leg]) == REPORT_S).all()
    assert trips > 2 * len(np.unique(found["vid"]))  # they come back


def test_cars_that_stop_report_four_times_at_least_some_alone_and_some_in_twos() -> None:
    found = reports(read(LinearRoadSettings(cars=2_000, accident_share=0.02), 0, 200_000))
    still = {name: column[found["speed"] == 0] for name, column in found.items()}
    seen: dict[tuple[int, ...], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    names = ("xway", "dir", "seg", "lane", "pos")
    for *place, vid in zip(*(still[name].tolist() for name in (*names, "vid")), strict=True):
        seen[tuple(place)][vid] += 1
    cars = [len(at) for at in seen.values()]
    assert cars.count(1) > 10
    assert cars.count(2) > 10
    complete = [at for at in seen.values() if all(4 <= times <= 7 for times in at.values())]
    assert len(complete) > 0.9 * len(seen)  # the others began before the first or end after the last record


def test_without_accidents_everybody_drives() -> None:
    assert reports(read(LinearRoadSettings(cars=500, accident_share=0.0), 0, 50_000))["speed"].min() > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cars": 0}, "cars must be positive: linear_road got 0"),
        ({"expressways": -1}, "expressways must be positive"),
        ({"cars": 10**8, "expressways": 2}, "too many cars"),
        ({"accident_share": 0.7}, "accident_share must be at most a half"),
    ],
)
def test_settings_say_what_is_wrong(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinearRoadSettings(**wrong)


def test_settings_for_a_rate_and_a_speedup_have_the_cars_for_it() -> None:
    chosen = LinearRoadSettings.at(3_000_000, 100.0, expressways=4, seed=7)
    assert chosen.events_per_second == pytest.approx(30_000, rel=1e-3)
    assert (chosen.expressways, chosen.seed) == (4, 7)
