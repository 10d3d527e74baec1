"""Roads: their lengths, their exits, and the model by which one car follows another."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from penstock.workloads.traffic.road import (
    CAR,
    CAR_LENGTH_M,
    advance_road,
    city,
    intended_acceleration,
    place_on_map,
    room_for,
)

LENGTH_M = 1000.0
LIMIT = 15.0


def road_with(*cars: tuple[float, float, int]) -> NDArray[np.void]:
    """Cars of (position, speed, lane), by position."""
    road = np.zeros(len(cars), CAR)
    for number, (position, speed, lane) in enumerate(cars):
        road[number] = (position, speed, 0.0, 1.0, number, lane)
    return road


def advance(cars: NDArray[np.void], frames: int, lanes: int = 1, exit_at: Any = ()) -> list[tuple[int, int]]:
    """Let frames pass; return (frame, car) of those that passed an exit."""
    passed_by, passed_exit = np.zeros(8, np.int32), np.zeros(8, np.int64)
    passes = []
    for frame in range(frames):
        passed = advance_road(
            cars,
            np.zeros(1, CAR),
            np.zeros(lanes),
            np.zeros(lanes),
            lanes,
            LENGTH_M,
            LIMIT,
            frame,
            0.04,
            np.array(exit_at, np.float64),
            passed_by,
            passed_exit,
        )
        passes += [(frame, int(car)) for car in passed_by[:passed]]
    return passes


def test_the_lanes_of_a_city_have_the_length_asked_for() -> None:
    network = city(10, 100_000)
    assert (network.lanes * network.length).sum() == pytest.approx(100_000)
    assert len(set(network.limit)) > 2


def test_exits_lead_to_the_same_place_on_the_map() -> None:
    network = city(7, 60_000)
    assert network.exits_first[-1] == len(network.exit_at) == 2 * 4 * 4 * 3
    for road in range(7):
        exits = range(network.exits_first[road], network.exits_first[road + 1])
        assert (np.diff(network.exit_at[exits.start : exits.stop]) > 0).all()
        for number in exits:
            goal = network.exit_road[number]
            assert on_map(network, road, network.exit_at[number]) == pytest.approx(
                on_map(network, goal, network.exit_position[number])
            )


def on_map(network: Any, road: int, position: float) -> tuple[float, float]:
    box = (network.left[road], network.bottom[road], network.width[road], network.height[road])
    x, y = place_on_map(position, *box)
    return x, y


def test_a_loop_is_closed_and_driven_counter_clockwise() -> None:
    corners = [place_on_map(position, 10.0, 20.0, 30.0, 5.0) for position in (0.0, 30.0, 35.0, 65.0, 70.0)]
    assert corners == [(10, 20), (40, 20), (40, 25), (10, 25), (10, 20)]


def test_too_short_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match=r"50 roads with 1000 m of lanes.*take fewer roads"):
        city(50, 1000)


def test_a_driver_who_has_the_wanted_speed_and_a_free_road_keeps_it() -> None:
    assert intended_acceleration(LIMIT, 1.0, np.inf, 0.0) == 0
    assert intended_acceleration(0.0, 0.0, np.inf, 0.0) == 1.5


def test_a_driver_at_the_wanted_gap_brakes_as_the_model_says() -> None:
    # Wanted: 2 m + 10 m/s · 1.2 s = 14 m; at half the wanted speed 1.5 · (1 - 1/16 - 1).
    assert intended_acceleration(10.0, 0.5, 14.0, 0.0) == pytest.approx(-1.5 / 16)
    # Closing in at 2 m/s adds 10 · 2 / (2 · sqrt(1.5 · 2)) m.
    wanted = 14 + 10 / np.sqrt(3)
    assert intended_acceleration(10.0, 0.5, 20.0, 2.0) == pytest.approx(
        1.5 * (1 - 1 / 16 - (wanted / 20) ** 2)
    )


def test_a_car_alone_reaches_the_limit() -> None:
    cars = road_with((0.0, 0.0, 0))
    advance(cars, 25 * 60)
    assert cars[0]["speed"] == pytest.approx(LIMIT, rel=0.01)


def test_a_car_stops_behind_one_that_stands() -> None:
    cars = road_with((0.0, LIMIT, 0), (400.0, 0.0, 0))
    for _ in range(25 * 120):
        cars[1]["position"], cars[1]["speed"] = 400.0, 0.0
        advance(cars, 1)
    assert 0 < cars[1]["position"] - CAR_LENGTH_M - cars[0]["position"] < 3
    assert cars[0]["speed"] < 0.2


def test_a_car_overtakes_a_slow_one_if_there_is_another_lane() -> None:
    cars = road_with((0.0, LIMIT, 0), (100.0, 3.0, 0))
    cars[1]["caution"] = 5.0
    advance(cars, 25 * 30, lanes=2)
    position = dict(zip(cars["id"].tolist(), cars["position"].tolist(), strict=True))
    assert position[0] > position[1]
    assert cars["lane"].sum() == 1


def test_cars_stay_sorted_when_they_pass_the_start_of_the_loop() -> None:
    cars = road_with(*((float(p), 10.0, p // 10 % 2) for p in range(0, 1000, 20)))
    for _ in range(100):
        advance(cars, 10, lanes=2)
        assert (np.diff(cars["position"]) >= 0).all()
        assert cars["position"].min() >= 0
        assert cars["position"].max() < LENGTH_M
    assert sorted(cars["id"]) == list(range(50))


def test_each_car_in_the_outer_lane_passes_an_exit_once_a_loop() -> None:
    cars = road_with((100.0, 10.0, 0), (300.0, 10.0, 0), (350.0, 10.0, 1))
    passes = advance(cars, 25 * 30, lanes=2, exit_at=(310.0, 400.0))
    outer = [car for _, car in passes if car < 2]
    assert outer[:2] == [1, 1]
    assert outer.count(1) == 2
    assert outer.count(0) == 2
    assert all(car < 2 for _, car in passes)


def test_a_new_car_finds_room_only_where_nobody_has_to_brake_hard() -> None:
    cars = road_with((100.0, LIMIT, 0), (200.0, LIMIT, 0))
    assert room_for(cars, 0, 150.0, LIMIT, 1.0, LENGTH_M, LIMIT) == 1
    assert room_for(cars, 0, 106.0, LIMIT, 1.0, LENGTH_M, LIMIT) == -1  # cuts in
    assert room_for(cars, 0, 198.0, LIMIT, 1.0, LENGTH_M, LIMIT) == -1  # overlaps the leader
    assert room_for(cars, 1, 106.0, LIMIT, 1.0, LENGTH_M, LIMIT) == 1  # another lane
    # Round the start of the loop, both ways.
    cars = road_with((1.0, LIMIT, 0), (995.0, LIMIT, 0))
    assert room_for(cars, 0, 998.0, LIMIT, 1.0, LENGTH_M, LIMIT) == -1
    assert room_for(cars, 0, 2.0, LIMIT, 1.0, LENGTH_M, LIMIT) == -1
