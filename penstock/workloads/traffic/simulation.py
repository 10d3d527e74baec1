"""A city's cars over a day, simulated frame by frame and addressable by offset."""

import enum
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from penstock.workloads.traffic.road import (
    CAR,
    CAR_LENGTH_M,
    RoadNetwork,
    advance_road,
    city,
    index_after,
    place_on_map,
    room_for,
    widest_gap,
)

FIELDS: tuple[tuple[str, str], ...] = (
    ("ts", "timestamp"),
    ("id", "int64"),
    ("x", "float64"),
    ("y", "float64"),
    ("speed", "float64"),
    ("acc", "float64"),
    ("lane", "int32"),
    ("road", "int32"),
)
VOCABULARY: dict[str, tuple[str, ...]] = {}


class Profile(enum.Enum):
    """How the number of cars under way changes over time."""

    CONSTANT = "constant"
    MORNING = "morning"


@dataclass(frozen=True)
class TrafficSettings:
    """What the simulated traffic depends on.

    cars: how many are under way; with a morning profile, at its peak.
    morning_s: how long a morning lasts, rise and fall of the rush hour included; then the next one follows.
    quiet_share: the share of `cars` under way before and after the rush hour.
    metres_per_car: how much lane there is for each of `cars`: about 20 is dense traffic, 100 is free.
    trip_s: how long a car is under way on average; when one arrives, another departs elsewhere.
    base_us: the event time of the first frame.
    """

    seed: int = 0
    cars: int = 120_000
    profile: Profile = Profile.CONSTANT
    frames_per_second: int = 25
    roads: int = 50
    metres_per_car: float = 25.0
    morning_s: float = 14_400.0
    quiet_share: float = 0.2
    trip_s: float = 600.0
    base_us: int = 0

    def __post_init__(self) -> None:
        if self.cars < 1 or self.roads < 1:
            raise ValueError(
                f"cars and roads must be positive: traffic got {self.cars} cars on {self.roads} roads; "
                "write e.g. cars=1000, roads=4"
            )
        if not 5 <= self.frames_per_second <= 1000:
            raise ValueError(
                f"frames_per_second must be from 5 to 1000: traffic got {self.frames_per_second}; "
                "drivers who look less often than every 0.2 s do not follow the model"
            )
        if self.metres_per_car < 3 * CAR_LENGTH_M:
            raise ValueError(
                f"metres_per_car must be at least {3 * CAR_LENGTH_M}: traffic got {self.metres_per_car}; "
                "a car that departs would find no gap"
            )
        if not 0 < self.quiet_share <= 1:
            raise ValueError(
                f"quiet_share must be over 0 and at most 1: traffic got {self.quiet_share}; write e.g. 0.2"
            )
        if self.trip_s <= 0 or self.morning_s * self.frames_per_second < 1:
            raise ValueError(
                f"trip_s and morning_s must be positive: traffic got {self.trip_s} and {self.morning_s}; "
                "write e.g. trip_s=600, morning_s=14400"
            )


class TrafficSimulation:
    """The endless sequence of car reports that one choice of settings stands for.

    A frame holds one row per car under way, by road and by position along it; offsets count rows from frame
    to frame. Reading forwards costs one simulated frame per frame. Reading backwards simulates again from
    the latest kept state before: at most 500 frames for one less than 500 frames back, more for older ones.
    One thread at a time may read.

    >>> traffic = TrafficSimulation(TrafficSettings(cars=100, roads=2))
    >>> traffic.locate(1234), traffic.cars_in(12)
    ((12, 34), 100)
    """

    def __init__(self, settings: TrafficSettings) -> None:
        self.settings = settings
        self.network = city(settings.roads, settings.cars * settings.metres_per_car)
        counts = _cars_per_frame(settings)
        self._cars_per_frame = counts
        # Invariant: _rows_before[f] rows lie before frame f of a period; the last entry is their total.
        self._rows_before = np.concatenate(([0], np.cumsum(counts)))
        self._key = np.uint64(np.random.SeedSequence(settings.seed).generate_state(1, np.uint64)[0])
        self._traffic = _Traffic.at_rest(settings, self.network)
        self._frame = 0
        self._keyframes: dict[int, _Keyframe] = {}
        self._begin()

    def __reduce__(self) -> tuple[Any, ...]:
        # The settings say it all. A process that is sent the simulation again goes on with the one it has,
        # where that stands.
        return _received, (self.settings,)

    def fill(self, offset: int, n: int, columns: dict[str, NDArray[Any]], start: int) -> None:
        """Write the rows [offset, offset + n) into `columns` from position `start` on."""
        frame, row = self.locate(offset)
        while n > 0:
            self._seek(frame)
            rows = min(n, self.cars_in(frame) - row)
            stop = start + rows
            _report(
                row,
                self.time_us(frame),
                self.network,
                self._traffic.first,
                self._traffic.count,
                self._traffic.cars,
                columns["ts"][start:stop],
                columns["id"][start:stop],
                columns["x"][start:stop],
                columns["y"][start:stop],
                columns["speed"][start:stop],
                columns["acc"][start:stop],
                columns["lane"][start:stop],
                columns["road"][start:stop],
            )
            frame, row, start, n = frame + 1, 0, stop, n - rows

    def locate(self, offset: int) -> tuple[int, int]:
        """The frame that holds the row at this offset, and the row's number in it."""
        periods, rest = divmod(offset, int(self._rows_before[-1]))
        frame = int(np.searchsorted(self._rows_before, rest, side="right")) - 1
        return periods * len(self._cars_per_frame) + frame, rest - int(self._rows_before[frame])

    def rows_before(self, frame: int) -> int:
        """The offset of the frame's first row."""
        periods, rest = divmod(frame, len(self._cars_per_frame))
        return periods * int(self._rows_before[-1]) + int(self._rows_before[rest])

    def cars_in(self, frame: int) -> int:
        """How many cars are under way in this frame, which needs no simulation."""
        return int(self._cars_per_frame[frame % len(self._cars_per_frame)])

    def time_us(self, frame: int) -> int:
        """The event time of a frame."""
        return self.settings.base_us + frame * 1_000_000 // self.settings.frames_per_second

    def _begin(self) -> None:
        self._traffic.place(self.cars_in(0), self.settings, self.network)
        self._frame = 0

    def _seek(self, frame: int) -> None:
        if frame < self._frame:
            kept = max((key for key in self._keyframes if key <= frame), default=0)
            if kept == 0:
                self._begin()
            else:
                self._traffic.restore(self._keyframes[kept])
                self._frame = kept
        while self._frame < frame:
            self._step()

    def _step(self) -> None:
        """A frame is a function of the one before, the seed and the frame's number only."""
        settings = self.settings
        now, then = self.cars_in(self._frame), self.cars_in(self._frame + 1)
        traffic = self._traffic
        _advance(
            self._key,
            self._frame,
            now / (settings.trip_s * settings.frames_per_second),
            then - now,
            1.0 / settings.frames_per_second,
            self.network,
            traffic.first,
            traffic.count,
            traffic.cars,
            traffic.idle,
            traffic.idle_range,
            traffic.spare,
            traffic.ahead_position,
            traffic.ahead_speed,
            traffic.passed_by,
            traffic.passed_exit,
        )
        self._frame += 1
        if self._frame % _KEYFRAME_EVERY == 0:
            if self._frame not in self._keyframes:
                self._keyframes[self._frame] = traffic.keep()
            self._thin_out_keyframes()

    def _thin_out_keyframes(self) -> None:
        """Keep about 2 · log2(frames / 500) keyframes, dense just behind the present, sparse long ago."""
        latest = max(self._keyframes) // _KEYFRAME_EVERY
        for frame in list(self._keyframes):
            number = frame // _KEYFRAME_EVERY
            if latest - number >= 2 * (number & -number):
                del self._keyframes[frame]


@lru_cache(2)
def _received(settings: TrafficSettings) -> TrafficSimulation:
    return TrafficSimulation(settings)


_KEYFRAME_EVERY = 500

# The morning, in shares of morning_s: quiet until the rise, then the peak, the fall, and quiet again.
_RISE, _PEAK, _FALL, _QUIET = 0.05, 0.35, 0.55, 0.90


def _cars_per_frame(settings: TrafficSettings) -> NDArray[np.int64]:
    """The number of cars in each frame of one period."""
    if settings.profile is Profile.CONSTANT:
        return np.array([settings.cars], np.int64)
    frames = int(settings.morning_s * settings.frames_per_second)
    ramp = np.interp(np.arange(frames) / frames, (_RISE, _PEAK, _FALL, _QUIET), (0.0, 1.0, 1.0, 0.0))
    busy = ramp * ramp * (3 - 2 * ramp)
    quiet = settings.cars * settings.quiet_share
    counts: NDArray[np.int64] = np.maximum(np.rint(quiet + (settings.cars - quiet) * busy), 1).astype(
        np.int64
    )
    return counts


@dataclass(frozen=True)
class _Keyframe:
    """The state of a frame, without the unused space."""

    count: NDArray[np.int64]
    cars: NDArray[np.void]
    idle: NDArray[np.int32]
    idle_range: NDArray[np.int64]


@dataclass(frozen=True)
class _Traffic:
    """The cars of a frame, and the arrays that the kernels work in.

    Invariant: the cars of road r are cars[first[r] : first[r] + count[r]], sorted by position, and
    first[r + 1] - first[r] cars do not fit on the road, so that there is always room in the array.
    """

    first: NDArray[np.int64]
    count: NDArray[np.int64]
    cars: NDArray[np.void]
    # The ids not under way, a ring from idle_range[0] to idle_range[1]: an id rests before it departs again.
    idle: NDArray[np.int32]
    idle_range: NDArray[np.int64]
    spare: NDArray[np.void]
    ahead_position: NDArray[np.float64]
    ahead_speed: NDArray[np.float64]
    passed_by: NDArray[np.int32]
    passed_exit: NDArray[np.int64]

    @classmethod
    def at_rest(cls, settings: TrafficSettings, network: RoadNetwork) -> "_Traffic":
        """Reserve the space, with no car under way."""
        room = (network.lanes * (network.length // CAR_LENGTH_M + 2)).astype(np.int64)
        lanes = int(network.lanes.max())
        passes = len(network.exit_at) + 1
        return cls(
            first=np.concatenate(([0], np.cumsum(room))),
            count=np.zeros(len(room), np.int64),
            cars=np.zeros(int(room.sum()), CAR),
            idle=np.zeros(settings.cars + settings.cars // 16 + 1, np.int32),
            idle_range=np.zeros(2, np.int64),
            spare=np.zeros(1, CAR),
            ahead_position=np.zeros(lanes),
            ahead_speed=np.zeros(lanes),
            passed_by=np.zeros(passes, np.int32),
            passed_exit=np.zeros(passes, np.int64),
        )

    def place(self, under_way: int, settings: TrafficSettings, network: RoadNetwork) -> None:
        """Put the cars of the first frame on the road, in every lane evenly but for some jitter."""
        random = np.random.Generator(np.random.Philox(settings.seed))
        ids = random.permutation(len(self.idle)).astype(np.int32)
        metres = np.repeat(network.length, network.lanes)
        per_lane = np.diff(np.floor(under_way * np.concatenate(([0.0], np.cumsum(metres) / metres.sum()))))
        per_lane[-1] += under_way - per_lane.sum()
        used = 0
        lane_number = 0
        for road, (lanes, length, limit) in enumerate(
            zip(network.lanes, network.length, network.limit, strict=True)
        ):
            cars = np.zeros(int(per_lane[lane_number : lane_number + lanes].sum()), CAR)
            filled = 0
            for lane in range(lanes):
                n = int(per_lane[lane_number + lane])
                spacing = length / max(n, 1)
                rows = cars[filled : filled + n]
                jitter = random.random(n) * (spacing - 2 * CAR_LENGTH_M)
                rows["position"] = np.arange(n) * spacing + np.maximum(jitter, 0.0)
                rows["speed"] = min(0.7 * limit, max(spacing - 2 * CAR_LENGTH_M, 0.0) / 3)
                rows["lane"] = lane
                filled += n
            lane_number += lanes
            cars["id"] = ids[used : used + filled]
            used += filled
            cars.sort(order=("position", "lane"))
            self.cars[self.first[road] : self.first[road] + filled] = cars
            self.count[road] = filled
        _set_caution(self.first, self.count, self.cars)
        self.idle[: len(ids) - used] = ids[used:]
        self.idle_range[:] = 0, len(ids) - used

    def keep(self) -> _Keyframe:
        """Copy what the next frame depends on."""
        parts = [self.cars[first : first + n] for first, n in zip(self.first[:-1], self.count, strict=True)]
        return _Keyframe(self.count.copy(), np.concatenate(parts), self.idle.copy(), self.idle_range.copy())

    def restore(self, kept: _Keyframe) -> None:
        """Go back to a kept frame."""
        self.count[:] = kept.count
        self.idle[:] = kept.idle
        self.idle_range[:] = kept.idle_range
        used = 0
        for first, n in zip(self.first[:-1], kept.count, strict=True):
            self.cars[first : first + n] = kept.cars[used : used + n]
            used += n


_TURNING_SHARE = 0.4  # of the drivers who pass an exit in the outer lane; not all find room
_TRIES_IN_OUTER_LANE = 8
_TRIES = 24

# What a random number is for, so that the same frame and number give unrelated draws.
_FOR_TURN, _FOR_CHURN, _FOR_ARRIVAL, _FOR_DEPARTURE, _FOR_DRIVER = 1, 2, 3, 4, 5


@njit(nogil=True, cache=True)
def _uniform(key: np.uint64, purpose: int, frame: int, number: int) -> float:
    """A number in [0, 1) that depends on nothing but the arguments: splitmix64, applied to each in turn."""
    bits = key
    for part in (np.uint64(purpose), np.uint64(frame), np.uint64(number)):
        bits = (bits ^ part) + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits = bits ^ (bits >> np.uint64(31))
    return (bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(nogil=True, cache=True)
def _caution_of(driver: int) -> float:
    """Drivers want 80 to 120 % of the limit; one keeps to it for ever."""
    return 1.0 / (0.8 + 0.4 * _uniform(np.uint64(0), _FOR_DRIVER, 0, driver))


@njit(nogil=True, cache=True)
def _set_caution(first: NDArray[np.int64], count: NDArray[np.int64], cars: NDArray[np.void]) -> None:
    for road in range(count.size):
        for i in range(first[road], first[road] + count[road]):
            cars[i].caution = _caution_of(cars[i].id)


@njit(nogil=True, cache=True)
def _advance(
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


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def _arrive(row: int, first: NDArray[np.int64], count: NDArray[np.int64], cars: NDArray[np.void]) -> int:
    """Take the car in this row of the frame off the road and return its id."""
    road = 0
    while row >= count[road]:
        row -= count[road]
        road += 1
    driver = cars[first[road] + row].id
    _take_out(row, road, first, count, cars)
    return int(driver)


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def _take_out(
    i: int, road: int, first: NDArray[np.int64], count: NDArray[np.int64], cars: NDArray[np.void]
) -> None:
    here = cars[first[road] : first[road] + count[road]]
    for j in range(i, here.size - 1):
        here[j] = here[j + 1]
    count[road] -= 1


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def _report(
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
