"""What the simulated traffic depends on, and how many cars are under way when."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.workloads.traffic.road import CAR_LENGTH_M


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


# The morning, in shares of morning_s: quiet until the rise, then the peak, the fall, and quiet again.
_RISE, _PEAK, _FALL, _QUIET = 0.05, 0.35, 0.55, 0.90


def cars_per_frame(settings: TrafficSettings) -> NDArray[np.int64]:
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
