"""A city's cars over a day, simulated frame by frame and addressable by offset."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.workloads.traffic.movement import advance, report, set_caution
from penstock.workloads.traffic.road import (
    CAR,
    CAR_LENGTH_M,
    RoadNetwork,
    city,
)
from penstock.workloads.traffic.settings import TrafficSettings, cars_per_frame

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
        counts = cars_per_frame(settings)
        self.cars_per_frame = counts
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
            report(
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
        return periods * len(self.cars_per_frame) + frame, rest - int(self._rows_before[frame])

    def rows_before(self, frame: int) -> int:
        """The offset of the frame's first row."""
        periods, rest = divmod(frame, len(self.cars_per_frame))
        return periods * int(self._rows_before[-1]) + int(self._rows_before[rest])

    def cars_in(self, frame: int) -> int:
        """How many cars are under way in this frame, which needs no simulation."""
        return int(self.cars_per_frame[frame % len(self.cars_per_frame)])

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
        advance(
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
        set_caution(self.first, self.count, self.cars)
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
