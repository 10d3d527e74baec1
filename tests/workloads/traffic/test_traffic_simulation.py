"""The simulated city: reproducible, addressable, free of crashes, and slower when it is full."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from penstock.workloads.traffic.road import CAR_LENGTH_M
from penstock.workloads.traffic.settings import Profile, TrafficSettings
from penstock.workloads.traffic.simulation import FIELDS, TrafficSimulation

Columns = dict[str, NDArray[Any]]
DTYPES = {"timestamp": np.int64, "int64": np.int64, "int32": np.int32, "float64": np.float64}

SMALL = TrafficSettings(seed=4, cars=150, roads=4, trip_s=20, metres_per_car=30)
# A rush hour of seconds: many cars depart and arrive in each frame.
RUSH = TrafficSettings(seed=4, cars=400, roads=4, profile=Profile.MORNING, morning_s=12, quiet_share=0.1)


def empty(n: int) -> Columns:
    return {name: np.zeros(n, DTYPES[kind]) for name, kind in FIELDS}


def read(traffic: TrafficSimulation, offset: int, n: int) -> Columns:
    columns = empty(n)
    traffic.fill(offset, n, columns, 0)
    return columns


def read_frame(traffic: TrafficSimulation, frame: int) -> Columns:
    return read(traffic, traffic.rows_before(frame), traffic.cars_in(frame))


def gaps(traffic: TrafficSimulation) -> NDArray[np.float64]:
    """The free metres before every car of the present frame."""
    found = []
    state = traffic._traffic
    for road, n in enumerate(state.count):
        cars = state.cars[state.first[road] : state.first[road] + n]
        for lane in range(traffic.network.lanes[road]):
            front = cars["position"][cars["lane"] == lane]
            found.append(np.diff(front, append=front[:1] + traffic.network.length[road]) - CAR_LENGTH_M)
    return np.concatenate(found)


@hypothesis_settings(deadline=None, max_examples=30)
@given(
    st.sampled_from([SMALL, RUSH]),
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 700)), min_size=1, max_size=4),
)
def test_rows_do_not_depend_on_what_was_read_before(
    settings: TrafficSettings, reads: list[tuple[int, int]]
) -> None:
    wanderer = TrafficSimulation(settings)
    straight = read(TrafficSimulation(settings), 0, max(offset + n for offset, n in reads))
    for offset, n in reads:
        part = read(wanderer, offset, n)
        for name, _ in FIELDS:
            np.testing.assert_array_equal(part[name], straight[name][offset : offset + n], err_msg=name)


def test_reading_back_over_many_keyframes_gives_the_same_rows() -> None:
    settings = TrafficSettings(seed=1, cars=40, roads=2, trip_s=5, metres_per_car=40)
    traffic = TrafficSimulation(settings)
    frames = [10, 499, 500, 501, 1700, 2499, 3100, 4999, 5400]
    forwards = {frame: read_frame(traffic, frame) for frame in frames}
    read_frame(traffic, 6000)
    assert len(traffic._keyframes) < 10
    for frame in reversed(frames):
        back = read_frame(traffic, frame)
        for name, _ in FIELDS:
            np.testing.assert_array_equal(back[name], forwards[frame][name], err_msg=name)


def test_a_seed_decides_where_the_cars_are() -> None:
    same = [read(TrafficSimulation(SMALL), 3000, 150)["x"] for _ in range(2)]
    np.testing.assert_array_equal(same[0], same[1])
    other = read(TrafficSimulation(replace(SMALL, seed=5)), 3000, 150)["x"]
    assert (same[0] != other).any()


@pytest.mark.parametrize("settings", [SMALL, RUSH], ids=["constant", "rush"])
def test_offsets_and_frames_agree(settings: TrafficSettings) -> None:
    traffic = TrafficSimulation(settings)
    before = 0
    for frame in range(700):
        n = traffic.cars_in(frame)
        assert traffic.rows_before(frame) == before
        assert traffic.locate(before) == (frame, 0)
        assert traffic.locate(before + n - 1) == (frame, n - 1)
        before += n


def test_every_car_under_way_reports_once_a_frame() -> None:
    traffic = TrafficSimulation(RUSH)
    counts = []
    for frame in range(320):  # more than one morning
        rows = read_frame(traffic, frame)
        assert len(np.unique(rows["id"])) == len(rows["id"])
        assert (rows["ts"] == frame * 40_000).all()
        assert traffic._traffic.count.sum() == traffic.cars_in(frame)
        counts.append(len(rows["id"]))
    assert max(counts) == 400
    assert min(counts) == 40
    assert counts[300:] == counts[:20]


@pytest.mark.parametrize(
    "settings",
    [
        SMALL,
        RUSH,
        TrafficSettings(seed=1, cars=300, roads=3, metres_per_car=13.5, trip_s=3),
        TrafficSettings(seed=2, cars=300, roads=6, metres_per_car=100, frames_per_second=5),
    ],
    ids=["usual", "rush", "jam", "five_frames_per_second"],
)
def test_cars_never_touch_nor_drive_backwards(settings: TrafficSettings) -> None:
    traffic = TrafficSimulation(settings)
    for frame in range(0, 1500, 3):
        rows = read_frame(traffic, frame)
        assert gaps(traffic).min() > 0
        assert rows["speed"].min() >= 0
        assert rows["speed"].max() < 40
        for road in range(settings.roads):
            on_road = rows["road"] == road
            assert (rows["lane"][on_road] < traffic.network.lanes[road]).all()


def test_speeds_are_what_positions_say() -> None:
    traffic = TrafficSimulation(TrafficSettings(seed=3, cars=500, roads=4, trip_s=1e9, metres_per_car=40))
    before, after = read_frame(traffic, 300), read_frame(traffic, 301)
    was, now = np.argsort(before["id"]), np.argsort(after["id"])
    np.testing.assert_array_equal(before["id"][was], after["id"][now])
    moved = np.hypot(after["x"][now] - before["x"][was], after["y"][now] - before["y"][was])
    on_a_straight = (before["road"][was] == after["road"][now]) & (
        abs(moved - after["speed"][now] * 0.04) < 1e-9
    )
    assert on_a_straight.mean() > 0.98
    gained = (after["speed"][now] - before["speed"][was]) * 25
    np.testing.assert_allclose(after["acc"][now][on_a_straight], gained[on_a_straight], atol=1e-9)


def test_nobody_brakes_hard_in_usual_traffic() -> None:
    traffic = TrafficSimulation(TrafficSettings(seed=3, cars=2000, roads=4))
    hardest = min(read_frame(traffic, frame)["acc"].min() for frame in range(1000))
    assert hardest > -9


def test_roads_differ_in_speed_and_exchange_cars() -> None:
    traffic = TrafficSimulation(TrafficSettings(seed=3, cars=1000, roads=5, metres_per_car=40, trip_s=1e9))
    first, last = read_frame(traffic, 0), read_frame(traffic, 2000)
    speeds = [last["speed"][last["road"] == road].mean() for road in range(5)]
    # Road 0 is an expressway, road 3 a street with 30 km/h.
    assert speeds[0] > 1.5 * speeds[3]
    changed = first["road"][np.argsort(first["id"])] != last["road"][np.argsort(last["id"])]
    assert 0.05 < changed.mean() < 0.9
    assert len(np.unique(last["lane"])) == 4


@pytest.mark.parametrize("seed", range(4))
def test_the_rush_hour_slows_everybody_down(seed: int) -> None:
    settings = TrafficSettings(seed=seed, cars=1500, roads=5, profile=Profile.MORNING, morning_s=240)
    traffic = TrafficSimulation(settings)
    # Quiet after the first rush hour and before the second, when a fifth of the cars is under way.
    rush, after, before = (int(6000 * mornings) for mornings in (0.54, 0.99, 1.04))
    assert [traffic.cars_in(frame) for frame in (rush, after, before)] == [1500, 300, 300]
    rush_speed = read_frame(traffic, rush)["speed"].mean()
    assert rush_speed < 0.9 * read_frame(traffic, after)["speed"].mean()
    assert rush_speed < 0.9 * read_frame(traffic, before)["speed"].mean()


def test_denser_traffic_is_slower() -> None:
    settings = TrafficSettings(seed=3, cars=1000, roads=5)
    speeds = [
        read_frame(TrafficSimulation(replace(settings, metres_per_car=metres)), 1500)["speed"].mean()
        for metres in (15, 20, 25, 40, 100)
    ]
    assert speeds == sorted(speeds)
    assert speeds[0] < 0.5 * speeds[-1]


def test_drivers_keep_near_the_limit_of_an_empty_city() -> None:
    traffic = TrafficSimulation(TrafficSettings(seed=3, cars=30, roads=2, metres_per_car=2000, trip_s=1e9))
    rows = read_frame(traffic, 1500)
    share = rows["speed"] / traffic.network.limit[rows["road"]]
    assert share.min() > 0.75
    assert share.max() < 1.3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cars": 0}, "cars and roads must be positive"),
        ({"frames_per_second": 2}, "frames_per_second must be from 5 to 1000"),
        ({"metres_per_car": 5}, "metres_per_car must be at least 13.5"),
        ({"quiet_share": 0}, "quiet_share must be over 0"),
        ({"trip_s": 0}, "trip_s and morning_s must be positive"),
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrafficSettings(**wrong)
