"""Roads: the network they form, and how the cars on one of them move for one frame."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

CAR: np.dtype[np.void] = np.dtype(
    [
        ("position", np.float64),  # of the front bumper, in metres along the road: 0 <= position < length
        ("speed", np.float64),  # m/s, never negative
        ("acceleration", np.float64),  # m/s², over the last frame
        ("caution", np.float64),  # the road's limit over the speed that the driver wants
        ("id", np.int32),
        ("lane", np.int32),  # 0 is the outer lane, the only one with exits
    ]
)
CAR_LENGTH_M = 4.5

# (lanes, limit in km/h) of successive roads: every fifth is an expressway, the rest are city streets.
ROAD_CLASSES: tuple[tuple[int, int], ...] = ((4, 90), (2, 50), (3, 60), (1, 30), (2, 50))


class RoadNetwork(NamedTuple):
    """Roads as closed loops round rectangles, driven counter-clockwise, which meet at exits.

    The first seven arrays have one entry per road. The exits of road r are those from exits_first[r] up to
    exits_first[r + 1], by ascending exit_at: there a car can leave for exit_position on exit_road. Crossings
    are bridges: cars that stay on their road never meet those of another.
    """

    left: NDArray[np.float64]
    bottom: NDArray[np.float64]
    width: NDArray[np.float64]
    height: NDArray[np.float64]
    length: NDArray[np.float64]
    limit: NDArray[np.float64]  # m/s
    lanes: NDArray[np.int64]
    exits_first: NDArray[np.int64]
    exit_at: NDArray[np.float64]
    exit_road: NDArray[np.int64]
    exit_position: NDArray[np.float64]


def city(roads: int, lane_metres: float) -> RoadNetwork:
    """Lay out a grid of streets and avenues, both with two carriageways, of this length over all lanes.

    >>> city(4, 20_000).lanes.tolist()
    [4, 2, 3, 1]
    """
    streets = roads - roads // 2
    avenues = roads // 2
    lanes, limits = np.array([ROAD_CLASSES[road % len(ROAD_CLASSES)] for road in range(roads)], np.int64).T
    is_street = np.arange(roads) < streets
    blocks = np.where(is_street, avenues, streets) + 1
    # lane_metres = sum of lanes · 2 · (blocks · block_m + carriageway distance), solved for block_m.
    block_m = (lane_metres / 2 - _CARRIAGEWAYS_M * lanes.sum()) / (lanes * blocks).sum()
    if block_m < 2 * _CARRIAGEWAYS_M:
        raise ValueError(
            f"a block must be at least {2 * _CARRIAGEWAYS_M:.0f} m long: {roads} roads with "
            f"{lane_metres:.0f} m of lanes leave {block_m:.0f} m; take fewer roads or more metres"
        )
    place = block_m * np.where(is_street, np.arange(roads) + 1, np.arange(roads) - streets + 1)
    left = np.where(is_street, 0.0, place)
    bottom = np.where(is_street, place, 0.0)
    width = np.where(is_street, blocks * block_m, _CARRIAGEWAYS_M)
    height = np.where(is_street, _CARRIAGEWAYS_M, blocks * block_m)

    crossings: list[tuple[int, float, int, float]] = []
    for street in range(streets):
        for avenue in range(streets, roads):
            for y, eastbound in ((bottom[street], True), (bottom[street] + _CARRIAGEWAYS_M, False)):
                for x, southbound in ((left[avenue], True), (left[avenue] + _CARRIAGEWAYS_M, False)):
                    along_street = x if eastbound else 2 * width[street] + _CARRIAGEWAYS_M - x
                    along_avenue = (
                        2 * (_CARRIAGEWAYS_M + height[avenue]) - y if southbound else _CARRIAGEWAYS_M + y
                    )
                    crossings.append((street, along_street, avenue, along_avenue))
                    crossings.append((avenue, along_avenue, street, along_street))
    crossings.sort()
    return RoadNetwork(
        left=left,
        bottom=bottom,
        width=width,
        height=height,
        length=2 * (width + height),
        limit=limits / 3.6,
        lanes=lanes.copy(),
        exits_first=np.searchsorted([crossing[0] for crossing in crossings], np.arange(roads + 1)),
        exit_at=np.array([crossing[1] for crossing in crossings], np.float64),
        exit_road=np.array([crossing[2] for crossing in crossings], np.int64),
        exit_position=np.array([crossing[3] for crossing in crossings], np.float64),
    )


@njit(nogil=True, cache=True)
def place_on_map(
    position: float, left: float, bottom: float, width: float, height: float
) -> tuple[float, float]:
    """The coordinates of a position along the loop, which starts at the lower left corner."""
    if position < width:
        return left + position, bottom
    position -= width
    if position < height:
        return left + width, bottom + position
    position -= height
    if position < width:
        return left + width - position, bottom + height
    return left, bottom + height - (position - width)


@njit(nogil=True, cache=True)
def intended_acceleration(speed: float, share_of_wanted: float, gap_m: float, closing_speed: float) -> float:
    """The Intelligent Driver Model (Treiber, Hennecke, Helbing 2000, eqs. 2 and 3).

    share_of_wanted: speed over the speed that the driver wants; closing_speed: speed minus the leader's.
    """
    approach = speed * (_TIME_GAP_S + closing_speed * _APPROACH_FACTOR)
    wanted_gap_m = _STANDING_GAP_M + max(0.0, approach)
    pressure = wanted_gap_m / max(gap_m, _LEAST_GAP_M)
    squared = share_of_wanted * share_of_wanted
    return max(_ACCELERATION * (1.0 - squared * squared - pressure * pressure), -_HARDEST_BRAKING)


@njit(nogil=True, cache=True)
def advance_road(
    cars: NDArray[np.void],
    spare: NDArray[np.void],
    ahead_position: NDArray[np.float64],
    ahead_speed: NDArray[np.float64],
    lanes: int,
    length: float,
    limit: float,
    frame: int,
    frame_s: float,
    exit_at: NDArray[np.float64],
    passed_by: NDArray[np.int32],
    passed_exit: NDArray[np.int64],
) -> int:
    """Move the cars of one road, sorted by position, for one frame; return how many passed an exit.

    The ids of those, all in lane 0, go to `passed_by`, the exits' numbers to `passed_exit`. `spare` holds one
    car, and `ahead_position` and `ahead_speed` one entry per lane, for the kernel's own use.

    Invariant: cars in one lane never overlap, because a car covers at most half the gap that its leader
    leaves even if the leader stops at once.
    """
    n = cars.size
    if n == 0:
        return 0
    frames_per_s = 1.0 / frame_s
    _look_round_the_loop(cars, ahead_position, ahead_speed, lanes, length)
    passed = 0
    next_exit = exit_at.size - 1
    # From front to back, so that the last car seen in each lane is the leader of the next one there. What was
    # seen is kept as it was before the frame: all cars move at once.
    for i in range(n - 1, -1, -1):
        position = cars[i].position
        speed = cars[i].speed
        lane = cars[i].lane
        share = speed * cars[i].caution / limit
        gap_m = ahead_position[lane] - CAR_LENGTH_M - position
        acceleration = intended_acceleration(speed, share, gap_m, speed - ahead_speed[lane])

        if (cars[i].id + frame) & (_FRAMES_BETWEEN_CHANGES - 1) == 0:
            for other in range(max(lane - 1, 0), min(lane + 2, lanes)):
                gap_there_m = ahead_position[other] - CAR_LENGTH_M - position
                if other == lane or gap_there_m < _STANDING_GAP_M:
                    continue
                there = intended_acceleration(speed, share, gap_there_m, speed - ahead_speed[other])
                if there > acceleration + _WORTH_A_CHANGE and (
                    math.isinf(ahead_position[other]) or _follower_accepts(cars, i, other, limit)
                ):
                    lane = other
                    gap_m = gap_there_m
                    cars[i].lane = lane
                    acceleration = there
                    break

        ahead_position[lane] = position
        ahead_speed[lane] = speed
        new_speed = min(max(0.0, speed + acceleration * frame_s), 0.5 * gap_m * frames_per_s)
        new_position = position + new_speed * frame_s
        cars[i].position = new_position
        cars[i].speed = new_speed
        cars[i].acceleration = (new_speed - speed) * frames_per_s

        if lane == 0:
            while next_exit >= 0 and exit_at[next_exit] > new_position:
                next_exit -= 1
            if next_exit >= 0 and exit_at[next_exit] > position:
                passed_by[passed] = cars[i].id
                passed_exit[passed] = next_exit
                passed += 1

    _restore_order(cars, spare)
    if cars[n - 1].position >= length:
        while cars[n - 1].position >= length:
            spare[0] = cars[n - 1]
            for i in range(n - 1, 0, -1):
                cars[i] = cars[i - 1]
            cars[0] = spare[0]
            cars[0].position -= length
        _restore_order(cars, spare)
    return passed


@njit(nogil=True, cache=True)
def room_for(
    cars: NDArray[np.void],
    lane: int,
    position: float,
    speed: float,
    caution: float,
    length: float,
    limit: float,
) -> int:
    """Where in the sorted cars of a road a new one can go without anybody braking hard; -1 if nowhere."""
    n = cars.size
    at = index_after(cars, position)
    for step in range(n):
        j = at + step
        distance = cars[j].position - position if j < n else cars[j - n].position + length - position
        if distance > _SIGHT_M:
            break
        leader = cars[j if j < n else j - n]
        if leader.lane == lane:
            share = speed * caution / limit
            wish = intended_acceleration(speed, share, distance - CAR_LENGTH_M, speed - leader.speed)
            if distance - CAR_LENGTH_M < _STANDING_GAP_M or wish < -_FAIR_BRAKING:
                return -1
            break
    for step in range(1, n + 1):
        j = at - step
        distance = position - cars[j].position if j >= 0 else position + length - cars[j + n].position
        if distance > _SIGHT_M:
            break
        follower = cars[j if j >= 0 else j + n]
        if follower.lane == lane:
            if not _accepts(follower, distance - CAR_LENGTH_M, speed, limit):
                return -1
            break
    return at


@njit(nogil=True, cache=True)
def index_after(cars: NDArray[np.void], position: float) -> int:
    """The index of the first car beyond the position."""
    low = 0
    high = cars.size
    while low < high:
        middle = (low + high) // 2
        if cars[middle].position > position:
            high = middle
        else:
            low = middle + 1
    return low


@njit(nogil=True, cache=True)
def widest_gap(
    cars: NDArray[np.void],
    ahead_position: NDArray[np.float64],
    ahead_speed: NDArray[np.float64],
    lanes: int,
    length: float,
    limit: float,
) -> tuple[float, int, float, float]:
    """The length, lane and middle of the road's widest gap, and a speed that fits there. Scans all cars."""
    _look_round_the_loop(cars, ahead_position, ahead_speed, lanes, length)
    widest_m, widest_lane, middle, fitting_speed = 0.0, 0, 0.0, 0.0
    for lane in range(lanes):
        if math.isinf(ahead_position[lane]):
            return length, lane, 0.5 * length, 0.7 * limit
    for i in range(cars.size - 1, -1, -1):
        car = cars[i]
        gap_m = ahead_position[car.lane] - CAR_LENGTH_M - car.position
        if gap_m > widest_m:
            widest_m, widest_lane = gap_m, car.lane
            middle = (car.position + 0.5 * (gap_m + CAR_LENGTH_M)) % length
            fitting_speed = min(car.speed, ahead_speed[car.lane])
        ahead_position[car.lane] = car.position
        ahead_speed[car.lane] = car.speed
    return widest_m, widest_lane, middle, fitting_speed


_CARRIAGEWAYS_M = 20.0  # between the two directions of a road

# The model's parameters for city traffic.
_TIME_GAP_S = 1.2
_STANDING_GAP_M = 2.0
_ACCELERATION = 1.5
_COMFORTABLE_BRAKING = 2.0
_APPROACH_FACTOR = 0.5 / math.sqrt(_ACCELERATION * _COMFORTABLE_BRAKING)
# Beyond the model: what brakes and drivers can do.
_HARDEST_BRAKING = 9.0
_FAIR_BRAKING = 4.0
_LEAST_GAP_M = 0.1
_SIGHT_M = 100.0
# A change of lane must promise this much more acceleration (m/s²).
_WORTH_A_CHANGE = 0.3
_FRAMES_BETWEEN_CHANGES = 32  # a power of two


@njit(nogil=True, cache=True)
def _look_round_the_loop(
    cars: NDArray[np.void],
    ahead_position: NDArray[np.float64],
    ahead_speed: NDArray[np.float64],
    lanes: int,
    length: float,
) -> None:
    """Set what each lane's foremost car follows: its rearmost car, one loop further on.

    In an empty lane that is infinitely far.
    """
    for lane in range(lanes):
        ahead_position[lane] = math.inf
        ahead_speed[lane] = 0.0
    missing = lanes
    for i in range(cars.size):
        lane = cars[i].lane
        if math.isinf(ahead_position[lane]):
            ahead_position[lane] = cars[i].position + length
            ahead_speed[lane] = cars[i].speed
            missing -= 1
            if missing == 0:
                break


@njit(nogil=True, cache=True)
def _follower_accepts(cars: NDArray[np.void], i: int, lane: int, limit: float) -> bool:
    """Whether the car behind car i in another lane would let it in.

    False if that follower is beyond the loop's start: it has already moved in this frame.
    """
    for j in range(i - 1, -1, -1):
        distance = cars[i].position - cars[j].position
        if distance > _SIGHT_M:
            return True
        if cars[j].lane == lane:
            return _accepts(cars[j], distance - CAR_LENGTH_M, cars[i].speed, limit)
    return False


@njit(nogil=True, cache=True)
def _accepts(follower: Any, gap_m: float, leader_speed: float, limit: float) -> bool:
    share = follower.speed * follower.caution / limit
    wish = intended_acceleration(follower.speed, share, gap_m, follower.speed - leader_speed)
    return gap_m > _STANDING_GAP_M and wish > -_FAIR_BRAKING


@njit(nogil=True, cache=True)
def _restore_order(cars: NDArray[np.void], spare: NDArray[np.void]) -> None:
    """Sort by position. In one frame few cars pass one in another lane, so insertion is almost one scan."""
    for i in range(1, cars.size):
        position = cars[i].position
        if position < cars[i - 1].position:
            spare[0] = cars[i]
            j = i
            while j > 0 and cars[j - 1].position > position:
                cars[j] = cars[j - 1]
                j -= 1
            cars[j] = spare[0]
