"""One frame of the traffic after the other: how cars move, turn, arrive, depart and are reported."""

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from penstock.compiled.fixed import fixed, part
from penstock.workloads.traffic.road import (
    CAR,
    RoadNetwork,
    advance_road,
    index_after,
    place_on_map,
    room_for,
    widest_gap,
)

_TURNING_SHARE = 0.4  # of the drivers who pass an exit in the outer lane; not all find room
_TRIES_IN_OUTER_LANE = 8
_TRIES = 24

# What a random number is for, so that the same frame and number give unrelated draws.
_FOR_TURN, _FOR_CHURN, _FOR_ARRIVAL, _FOR_DEPARTURE, _FOR_DRIVER = 1, 2, 3, 4, 5


_I4, _I8, _F8, _CARS = (
    types.Array(kind, 1, "C") for kind in (types.int32, types.int64, types.float64, from_dtype(CAR))
)
_NETWORK = types.NamedTuple((*[_F8] * 6, _I8, _I8, _F8, _I8, _F8), RoadNetwork)  # type: ignore[no-untyped-call]


@part()
def _uniform(key: np.uint64, purpose: int, frame: int, number: int) -> float:
    """A number in [0, 1) that depends on nothing but the arguments: splitmix64, applied to each in turn."""
    bits = key
    for word in (np.uint64(purpose), np.uint64(frame), np.uint64(number)):
        bits = (bits ^ word) + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits = bits ^ (bits >> np.uint64(31))
    return (bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@part()
def _caution_of(driver: int) -> float:
    """Drivers want 80 to 120 % of the limit; one keeps to it for ever."""
    caution: float = 1.0 / (0.8 + 0.4 * _uniform(np.uint64(0), _FOR_DRIVER, 0, driver))
    return caution


@fixed(types.void(_I8, _I8, _CARS))
def set_caution(first: NDArray[np.int64], count: NDArray[np.int64], cars: NDArray[np.void]) -> None:
    for road in range(count.size):
        for i in range(first[road], first[road] + count[road]):
            cars[i].caution = _caution_of(cars[i].id)


@fixed(
    types.void(
        *(types.uint64, types.int64, types.float64, types.int64, types.float64, _NETWORK),
        *(_I8, _I8, _CARS, _I4, _I8, _CARS, _F8, _F8, _I4, _I8),
    )
)
def advance(
    key: np.uint64,
    frame: int,
    arrivals_per_frame: float,
    growth: int,
    frame_s: float,
    network: RoadNetwork,
    first: NDArray[np.int64],
    count: NDArray[np.int64],
    cars: NDArray[np.void],
    idle: NDArray[np.int32],
    idle_range: NDArray[np.int64],
    spare: NDArray[np.void],
    ahead_position: NDArray[np.float64],
    ahead_speed: NDArray[np.float64],
    passed_by: NDArray[np.int32],
    passed_exit: NDArray[np.int64],
) -> None:
    """One frame: all cars move, some turn, some arrive, others depart."""
    turning = 0
    for road in range(count.size):
        exits_first = network.exits_first[road]
        # Of a kept turn the arrays hold the driver and the exit; those of the next road are written behind.
        passed = advance_road(
            cars[first[road] : first[road] + count[road]],
            spare,
            ahead_position,
            ahead_speed,
            network.lanes[road],
            network.length[road],
            network.limit[road],
            frame,
            frame_s,
            network.exit_at[exits_first : network.exits_first[road + 1]],
            passed_by[turning:],
            passed_exit[turning:],
        )
        for k in range(turning, turning + passed):
            if _uniform(key, _FOR_TURN, frame, passed_by[k]) < _TURNING_SHARE:
                passed_by[turning] = passed_by[k]
                passed_exit[turning] = passed_exit[k] + exits_first
                turning += 1

    road = 0
    for k in range(turning):
        while passed_exit[k] >= network.exits_first[road + 1]:
            road += 1
        _turn(passed_by[k], road, passed_exit[k], network, first, count, cars)

    under_way = count.sum()
    arrivals = int(arrivals_per_frame + _uniform(key, _FOR_CHURN, frame, 0)) + max(-growth, 0)
    arrivals = min(arrivals, under_way)
    for k in range(arrivals):
        row = int(_uniform(key, _FOR_ARRIVAL, frame, k) * (under_way - k))
        idle[idle_range[1] % idle.size] = _arrive(row, first, count, cars)
        idle_range[1] += 1
    for _ in range(arrivals + growth):
        driver = idle[idle_range[0] % idle.size]
        idle_range[0] += 1
        _depart(key, frame, driver, network, first, count, cars, ahead_position, ahead_speed)


@part()
def _turn(
    driver: int,
    road: int,
    exit_number: int,
    network: RoadNetwork,
    first: NDArray[np.int64],
    count: NDArray[np.int64],
    cars: NDArray[np.void],
) -> None:
    """Move a car that has just passed an exit to the road there, unless that road has no room for it now."""
    here = cars[first[road] : first[road] + count[road]]
    i = index_after(here, network.exit_at[exit_number] - 1e-6)
    while here[i].id != driver:
        i += 1
    position = here[i].position
    acceleration = here[i].acceleration
    caution = here[i].caution
    goal = network.exit_road[exit_number]
    # The ramp, which takes no time here, has slowed the car down to what its driver wants there.
    speed = min(here[i].speed, network.limit[goal] / caution)
    length = network.length[goal]
    new_position = network.exit_position[exit_number] + position - network.exit_at[exit_number]
    there = cars[first[goal] : first[goal] + count[goal]]
    if (
        new_position < length
        and room_for(there, 0, new_position, speed, caution, length, network.limit[goal]) >= 0
    ):
        _take_out(i, road, first, count, cars)
        _put_in(goal, 0, new_position, speed, acceleration, caution, driver, first, count, cars)


@part()
def _arrive(row: int, first: NDArray[np.int64], count: NDArray[np.int64], cars: NDArray[np.void]) -> int:
    """Take the car in this row of the frame off the road and return its id."""
    road = 0
    while row >= count[road]:
        row -= count[road]
        road += 1
    driver = cars[first[road] + row].id
    _take_out(row, road, first, count, cars)
    return int(driver)


@part()
def _depart(
    key: np.uint64,
    frame: int,
    driver: int,
    network: RoadNetwork,
    first: NDArray[np.int64],
    count: NDArray[np.int64],
    cars: NDArray[np.void],
    ahead_position: NDArray[np.float64],
    ahead_speed: NDArray[np.float64],
) -> None:
    """Put a car on a road: at a random place if one has room, else into the widest gap of the city."""
    caution = _caution_of(driver)
    for attempt in range(_TRIES):
        number = driver * _TRIES + attempt
        # By the space in the array, which is proportional to the length of lanes.
        slot = int(_uniform(key, _FOR_DEPARTURE, frame, number) * first[count.size])
        road = int(np.searchsorted(first, slot, side="right")) - 1
        share = (slot - first[road]) / (first[road + 1] - first[road])
        lane = 0 if attempt < _TRIES_IN_OUTER_LANE else int(share * network.lanes[road])
        position = share * network.lanes[road] % 1.0 * network.length[road]
        length, limit = network.length[road], network.limit[road]
        speed = 0.5 * limit
        there = cars[first[road] : first[road] + count[road]]
        if room_for(there, lane, position, speed, caution, length, limit) >= 0:
            _put_in(road, lane, position, speed, 0.0, caution, driver, first, count, cars)
            return

    # Invariant: with at least three car lengths of lane per car, the widest gap holds one more.
    widest_m, best_road, best_lane, best_position, best_speed = -1.0, 0, 0, 0.0, 0.0
    for road in range(count.size):
        there = cars[first[road] : first[road] + count[road]]
        gap_m, lane, position, speed = widest_gap(
            there, ahead_position, ahead_speed, network.lanes[road], network.length[road], network.limit[road]
        )
        if gap_m > widest_m:
            widest_m, best_road, best_lane, best_position, best_speed = gap_m, road, lane, position, speed
    _put_in(best_road, best_lane, best_position, best_speed, 0.0, caution, driver, first, count, cars)


@part()
def _take_out(
    i: int, road: int, first: NDArray[np.int64], count: NDArray[np.int64], cars: NDArray[np.void]
) -> None:
    here = cars[first[road] : first[road] + count[road]]
    for j in range(i, here.size - 1):
        here[j] = here[j + 1]
    count[road] -= 1


@part()
def _put_in(
    road: int,
    lane: int,
    position: float,
    speed: float,
    acceleration: float,
    caution: float,
    driver: int,
    first: NDArray[np.int64],
    count: NDArray[np.int64],
    cars: NDArray[np.void],
) -> None:
    at = index_after(cars[first[road] : first[road] + count[road]], position)
    here = cars[first[road] : first[road] + count[road] + 1]
    for j in range(here.size - 1, at, -1):
        here[j] = here[j - 1]
    here[at].position = position
    here[at].speed = speed
    here[at].acceleration = acceleration
    here[at].caution = caution
    here[at].id = driver
    here[at].lane = lane
    count[road] += 1


@fixed(types.void(types.int64, types.int64, _NETWORK, _I8, _I8, _CARS, _I8, _I8, *[_F8] * 4, _I4, _I4))
def report(
    row: int,
    time_us: int,
    network: RoadNetwork,
    first: NDArray[np.int64],
    count: NDArray[np.int64],
    cars: NDArray[np.void],
    ts: NDArray[np.int64],
    ids: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    speed: NDArray[np.float64],
    acc: NDArray[np.float64],
    lane: NDArray[np.int32],
    road_of: NDArray[np.int32],
) -> None:
    """Write the frame's rows from `row` on, as many as the columns hold."""
    road = 0
    while row >= count[road]:
        row -= count[road]
        road += 1
    written = 0
    while written < ts.size:
        left, bottom = network.left[road], network.bottom[road]
        width, height = network.width[road], network.height[road]
        here = cars[first[road] + row : first[road] + count[road]]
        for i in range(min(here.size, ts.size - written)):
            k = written + i
            ts[k] = time_us
            ids[k] = here[i].id
            x[k], y[k] = place_on_map(here[i].position, left, bottom, width, height)
            speed[k] = here[i].speed
            acc[k] = here[i].acceleration
            lane[k] = here[i].lane
            road_of[k] = road
        written += min(here.size, ts.size - written)
        row = 0
        road += 1
