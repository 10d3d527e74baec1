"""Vehicles at both ends of a no-passing zone: every vehicle passes ``pos`` 1 and, 15 km later, ``pos`` 2."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIELDS: tuple[tuple[str, str], ...] = (("ts", "timestamp"), ("pos", "int32"), ("vehicle", "int64"))

ENTRY, EXIT = 1, 2  # what ``pos`` is at either end
LENGTH_KM = 15.0
USUAL_KMH = 60.0
FASTEST_KMH = 72.0
FAST_SHARE = 0.1

_HOUR_S = 3600.0


class VehicleArrivals(Enum):
    """How vehicles come to the zone."""

    CONSTANT = "constant"  # Poisson, one every 200 ms on average
    RUSH = "rush"  # Poisson, 0.5 a second up to 5 in 2 h, 2 h there, 2 h back
    UNIFORM = "uniform"  # 100 to 200 ms apart
    PARETO = "pareto"  # at least 50 ms apart, shape 2


@dataclass(frozen=True)
class NoPassingSettings:
    """What the passings depend on.

    seconds: vehicles enter for so long; the last ones leave up to 15 minutes later, or are cut off with
    ``cut``. rate: vehicles a second, for ``CONSTANT`` arrivals only.
    """

    arrivals: VehicleArrivals = VehicleArrivals.CONSTANT
    seconds: float = 8 * _HOUR_S
    rate: float = 5.0
    seed: int = 0
    cut: bool = True

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.rate > 0):
            raise ValueError(
                f"seconds and rate must be positive: no_passing got {self.seconds} and {self.rate}; "
                "write e.g. 3600 and 5"
            )


@dataclass(frozen=True)
class Passings:
    """All passings in the order of time; times in microseconds."""

    ts: Ints
    pos: NDArray[np.int32]
    vehicle: Ints

    @property
    def columns(self) -> dict[str, NDArray[np.generic]]:
        return {"ts": self.ts, "pos": self.pos, "vehicle": self.vehicle}

    def __len__(self) -> int:
        return len(self.ts)


def passings(settings: NoPassingSettings) -> Passings:
    """The stream of one choice of settings; the same for the same choice.

    >>> found = passings(NoPassingSettings(seconds=2000.0, rate=0.5, seed=1))
    >>> set(found.pos.tolist()), bool((np.diff(found.ts) >= 0).all())
    ({1, 2}, True)
    """
    random = np.random.default_rng(settings.seed)
    entries = _entries(settings, random)
    count = len(entries)
    fast = random.random(count) < FAST_SHARE
    kmh = np.where(fast, random.uniform(USUAL_KMH, FASTEST_KMH, count), USUAL_KMH)
    exits = entries + LENGTH_KM / kmh * _HOUR_S
    times = np.round(np.concatenate((entries, exits)) * 1e6).astype(np.int64)
    pos = np.repeat(np.array([ENTRY, EXIT], np.int32), count)
    vehicles = np.tile(np.arange(count), 2)
    if settings.cut:
        kept = times <= round(settings.seconds * 1e6)
        times, pos, vehicles = times[kept], pos[kept], vehicles[kept]
    order = np.lexsort((vehicles, pos, times))
    return Passings(times[order], pos[order], vehicles[order])


def rush_rate(at_s: Floats, seconds: float = 6 * _HOUR_S) -> Floats:
    """Vehicles a second over a rush hour that takes ``seconds``: up for a third of it, then level, then
    down."""
    third = seconds / 3.0
    return np.interp(at_s, [0.0, third, 2 * third, seconds], [0.5, 5.0, 5.0, 0.5])


def _entries(settings: NoPassingSettings, random: np.random.Generator) -> Floats:
    """When vehicles pass the entry, in seconds."""
    seconds = settings.seconds
    match settings.arrivals:
        case VehicleArrivals.CONSTANT:
            return _renewal(
                lambda n: random.exponential(1.0 / settings.rate, n), 1.0 / settings.rate, seconds
            )
        case VehicleArrivals.UNIFORM:
            return _renewal(lambda n: random.uniform(0.1, 0.2, n), 0.15, seconds)
        case VehicleArrivals.PARETO:
            return _renewal(lambda n: 0.05 * (1.0 + random.pareto(2.0, n)), 0.1, seconds)
        case VehicleArrivals.RUSH:
            grid = np.linspace(0.0, seconds, 20_001)
            rates = rush_rate(grid, seconds)
            expected = np.concatenate(([0.0], np.cumsum((rates[1:] + rates[:-1]) / 2 * np.diff(grid))))
            # a Poisson process of rate 1 in the expected number of vehicles
            at = _renewal(lambda n: random.exponential(1.0, n), 1.0, float(expected[-1]))
            return np.interp(at, expected, grid)


def _renewal(draw, mean: float, seconds: float) -> Floats:  # type: ignore[no-untyped-def]
    """Arrival times up to ``seconds``."""
    times: Floats = np.cumsum(draw(int(seconds / mean * 1.1) + 100))
    while times[-1] < seconds:
        more = times[-1] + np.cumsum(draw(1000))
        times = np.concatenate((times, more))
    return times[times <= seconds]
