"""The trip records of the New York taxi benchmark, addressable by offset."""

import hashlib
import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

MEDALLIONS = 13_237
HACK_LICENSES = 2 * MEDALLIONS + 1

FIELDS: tuple[tuple[str, str], ...] = (
    ("medallion", "string"),
    ("hack_license", "string"),
    ("vendor_id", "string"),
    ("pickup_datetime", "timestamp"),
    ("dropoff_datetime", "timestamp"),
    ("trip_time_in_secs", "int32"),
    ("trip_distance", "float64"),
    ("pickup_longitude", "float64"),
    ("pickup_latitude", "float64"),
    ("dropoff_longitude", "float64"),
    ("dropoff_latitude", "float64"),
    ("payment_type", "string"),
    ("fare_amount", "float64"),
    ("surcharge", "float64"),
    ("mta_tax", "float64"),
    ("tip_amount", "float64"),
    ("tolls_amount", "float64"),
    ("total_amount", "float64"),
)


def _hashes(kind: str, n: int) -> tuple[str, ...]:
    # The published records name cars and drivers by MD5 sums.
    return tuple(
        hashlib.md5(f"{kind} {i}".encode(), usedforsecurity=False).hexdigest().upper() for i in range(n)
    )


VOCABULARY: dict[str, tuple[str, ...]] = {
    "medallion": _hashes("medallion", MEDALLIONS),
    "hack_license": _hashes("hack_license", HACK_LICENSES),
    "vendor_id": ("CMT", "VTS"),
    "payment_type": ("CRD", "CSH", "NOC", "DIS", "UNK"),
}


@dataclass(frozen=True)
class TaxiSettings:
    """What the trips depend on, besides their offset.

    Event time is the dropoff: a trip is reported when it ends.

    events_per_second: how many trips end in one second of event time.
    base_us: the dropoff time of offset 0 (by default the first midnight of 2013).
    disorder_us: a trip's dropoff lies at most this much before the time that its offset stands for.
    invalid_share: the share of trips whose pickup or dropoff was recorded as (0, 0).
    """

    seed: int = 0
    events_per_second: int = 100_000
    base_us: int = 1_356_998_400_000_000
    disorder_us: int = 0
    invalid_share: float = 0.015

    def __post_init__(self) -> None:
        if self.events_per_second <= 0:
            raise ValueError(
                f"events_per_second must be positive: taxi got {self.events_per_second}; write e.g. 100_000"
            )
        if self.disorder_us < 0:
            raise ValueError(
                f"disorder_us must not be negative: taxi got {self.disorder_us}; write 0 for none"
            )
        if not 0 <= self.invalid_share <= 1:
            raise ValueError(
                f"invalid_share must be a share: taxi got {self.invalid_share}; write e.g. 0.015"
            )


class TaxiTrips:
    """The endless sequence of trips that one choice of settings stands for.

    >>> from numpy import empty, float64, int32, int64
    >>> dtypes = {"string": int32, "timestamp": int64, "int32": int32, "float64": float64}
    >>> columns = {name: empty(100, dtypes[kind]) for name, kind in FIELDS}
    >>> TaxiTrips(TaxiSettings()).fill(0, 100, columns, 0)
    >>> (columns["dropoff_datetime"][1:] - columns["dropoff_datetime"][:-1]).tolist()[:3]
    [10, 10, 10]
    """

    def __init__(self, settings: TaxiSettings) -> None:
        self.settings = settings
        self._key = np.uint64(np.random.SeedSequence(settings.seed).generate_state(1, np.uint64)[0])

    def fill(self, offset: int, n: int, columns: dict[str, NDArray[Any]], start: int) -> None:
        """Write the trips [offset, offset + n) into `columns` from position `start` on.

        String columns receive int32 indices into VOCABULARY.
        """
        stop = start + n
        _fill(
            offset,
            self._key,
            self.settings.events_per_second,
            self.settings.base_us,
            self.settings.disorder_us,
            self.settings.invalid_share,
            _PLACE_OF_BITS,
            _PLACES,
            _MILES,
            _HEADINGS,
            columns["medallion"][start:stop],
            columns["hack_license"][start:stop],
            columns["vendor_id"][start:stop],
            columns["pickup_datetime"][start:stop],
            columns["dropoff_datetime"][start:stop],
            columns["trip_time_in_secs"][start:stop],
            columns["trip_distance"][start:stop],
            columns["pickup_longitude"][start:stop],
            columns["pickup_latitude"][start:stop],
            columns["dropoff_longitude"][start:stop],
            columns["dropoff_latitude"][start:stop],
            columns["payment_type"][start:stop],
            columns["fare_amount"][start:stop],
            columns["surcharge"][start:stop],
            columns["mta_tax"][start:stop],
            columns["tip_amount"][start:stop],
            columns["tolls_amount"][start:stop],
            columns["total_amount"][start:stop],
        )


@dataclass(frozen=True)
class PickupPlace:
    """A cluster of pickups, and what the trips from there are like.

    heading_deg is clockwise from north; a trip leaves along it, or against it where `both_ways`.
    """

    share: float
    longitude: float
    latitude: float
    spread_east_m: float
    spread_north_m: float
    median_miles: float
    spread_log_miles: float
    heading_deg: float
    heading_spread_deg: float
    both_ways: bool
    toll_share: float


# Manhattan's avenues run 29 degrees east of north. Shares and medians are roughly those of January 2013.
_CITY: tuple[PickupPlace, ...] = (
    PickupPlace(0.30, -73.9840, 40.7549, 900, 1100, 1.6, 0.65, 29, 35, True, 0.00),  # midtown
    PickupPlace(0.17, -73.9900, 40.7350, 800, 800, 1.7, 0.65, 29, 40, True, 0.00),  # Village, Union Square
    PickupPlace(0.17, -73.9580, 40.7736, 500, 1300, 1.6, 0.60, 29, 30, True, 0.00),  # Upper East Side
    PickupPlace(0.12, -73.9780, 40.7850, 400, 1300, 1.6, 0.60, 29, 30, True, 0.00),  # Upper West Side
    PickupPlace(0.09, -74.0080, 40.7120, 500, 700, 2.4, 0.70, 35, 40, False, 0.02),  # Financial District
    PickupPlace(0.05, -73.9850, 40.6880, 2200, 2000, 2.5, 0.75, 0, 90, True, 0.03),  # Brooklyn
    PickupPlace(0.03, -73.9300, 40.7600, 2200, 1500, 2.6, 0.75, 270, 60, False, 0.05),  # Queens
    PickupPlace(0.02, -73.9450, 40.8150, 700, 1500, 2.2, 0.70, 209, 40, False, 0.00),  # Harlem
    PickupPlace(0.03, -73.8720, 40.7740, 350, 250, 9.0, 0.30, 260, 15, False, 0.45),  # La Guardia
    PickupPlace(0.02, -73.7830, 40.6450, 400, 350, 16.5, 0.25, 302, 12, False, 0.40),  # JFK
)

# Ten random bits choose a place, ten the distance, six the heading: the kernel looks up instead of computing.
_STEPS = 1024
_QUANTILES = (np.arange(_STEPS) + 0.5) / _STEPS

_PLACE_OF_BITS: NDArray[np.int64] = np.searchsorted(
    np.cumsum([place.share for place in _CITY]), _QUANTILES
).astype(np.int64)

_PLACES: NDArray[np.float64] = np.array(
    [
        (place.longitude, place.latitude, place.spread_east_m, place.spread_north_m, place.toll_share)
        for place in _CITY
    ]
)

# Log-normal distances, rounded as the meter prints them.
_NORMAL_QUANTILES = np.array([NormalDist().inv_cdf(q) for q in _QUANTILES])
_MILES: NDArray[np.float64] = np.array(
    [np.round(place.median_miles * np.exp(place.spread_log_miles * _NORMAL_QUANTILES), 2) for place in _CITY]
)

_HEADINGS_PER_PLACE = 64


def _headings() -> NDArray[np.float64]:
    """For each place, equally likely directions of a trip as (east, north) unit vectors."""
    across = (np.arange(_HEADINGS_PER_PLACE) // 2 + 0.5) / (_HEADINGS_PER_PLACE // 2) * 2 - 1
    backwards = np.arange(_HEADINGS_PER_PLACE) % 2 * 180.0
    vectors = np.empty((len(_CITY), _HEADINGS_PER_PLACE, 2))
    for row, place in enumerate(_CITY):
        degrees = (
            place.heading_deg
            + place.heading_spread_deg * across * np.abs(across)
            + backwards * place.both_ways
        )
        vectors[row, :, 0] = np.sin(np.radians(degrees))
        vectors[row, :, 1] = np.cos(np.radians(degrees))
    return vectors


_HEADINGS: NDArray[np.float64] = _headings()

_DEGREES_NORTH_PER_M = 1 / 111_200.0
_DEGREES_EAST_PER_M = 1 / 84_300.0  # at the latitude of New York
_METRES_PER_MILE = 1609.344
_STRAIGHT_SHARE = 0.75  # of the driven way, what a straight line would be

_DAY_US = 86_400_000_000
_HOUR_US = 3_600_000_000


@njit(nogil=True, cache=True)
def _mix(bits: np.uint64) -> np.uint64:
    """The finaliser of splitmix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@njit(nogil=True, cache=True)
def _normal(bits: np.uint64) -> float:
    """An almost normal number: the sum of the four 16-bit parts, scaled to mean 0 and variance 1."""
    part = np.uint64(0xFFFF)
    total = (
        np.int64(bits & part)
        + np.int64(bits >> np.uint64(16) & part)
        + np.int64(bits >> np.uint64(32) & part)
        + np.int64(bits >> np.uint64(48))
    )
    return (total - 131_070.0) * (math.sqrt(3.0) / 65_536.0)


@njit(nogil=True, cache=True)
def _below(bits: np.uint64, shift: int, n: int) -> int:
    """A number in [0, n) from the 16 bits at `shift`."""
    return int((bits >> np.uint64(shift) & np.uint64(0xFFFF)) * np.uint64(n) >> np.uint64(16))


@njit(nogil=True, cache=True)
def _fill(
    offset: int,
    key: np.uint64,
    events_per_second: int,
    base_us: int,
    disorder_us: int,
    invalid_share: float,
    place_of_bits: NDArray[np.int64],
    places: NDArray[np.float64],
    miles_from: NDArray[np.float64],
    headings: NDArray[np.float64],
    medallion: NDArray[np.int32],
    hack_license: NDArray[np.int32],
    vendor_id: NDArray[np.int32],
    pickup_datetime: NDArray[np.int64],
    dropoff_datetime: NDArray[np.int64],
    trip_time_in_secs: NDArray[np.int32],
    trip_distance: NDArray[np.float64],
    pickup_longitude: NDArray[np.float64],
    pickup_latitude: NDArray[np.float64],
    dropoff_longitude: NDArray[np.float64],
    dropoff_latitude: NDArray[np.float64],
    payment_type: NDArray[np.int32],
    fare_amount: NDArray[np.float64],
    surcharge: NDArray[np.float64],
    mta_tax: NDArray[np.float64],
    tip_amount: NDArray[np.float64],
    tolls_amount: NDArray[np.float64],
    total_amount: NDArray[np.float64],
) -> None:
    golden = np.uint64(0x9E3779B97F4A7C15)
    invalid_below = int(invalid_share * 65_536)

    # Invariant: now_us = base_us + k * 1_000_000 // events_per_second for offset k, `fraction` its remainder.
    # Counted up, because divisions would cost more than the random numbers.
    into_second = (offset % events_per_second) * 1_000_000
    now_us = base_us + (offset // events_per_second) * 1_000_000 + into_second // events_per_second
    fraction = into_second % events_per_second
    step_us = 1_000_000 // events_per_second
    step_fraction = 1_000_000 % events_per_second
    hour = now_us % _DAY_US // _HOUR_US
    hour_ends_us = (now_us // _HOUR_US + 1) * _HOUR_US

    # Each trip owns five consecutive states of splitmix64.
    state = key + np.uint64(offset) * np.uint64(5) * golden
    for i in range(medallion.size):
        choice = _mix(state)
        detail = _mix(state + golden)
        east = _normal(_mix(state + np.uint64(2) * golden))
        north = _normal(_mix(state + np.uint64(3) * golden))
        numbers = _mix(state + np.uint64(4) * golden)
        state += np.uint64(5) * golden

        while now_us >= hour_ends_us:
            hour = (hour + 1) % 24
            hour_ends_us += _HOUR_US
        ended_us = now_us
        if disorder_us > 0:
            ended_us -= int((numbers >> np.uint64(32)) * np.uint64(disorder_us + 1) >> np.uint64(32))
        now_us += step_us
        fraction += step_fraction
        if fraction >= events_per_second:
            fraction -= events_per_second
            now_us += 1

        place = place_of_bits[choice & np.uint64(_STEPS - 1)]
        miles = miles_from[place, choice >> np.uint64(16) & np.uint64(_STEPS - 1)]
        # Slower by day than by night, and long trips use faster roads.
        miles_per_hour = (9.0 if 7 <= hour < 20 else 13.0) + 0.8 * min(miles, 15.0)
        miles_per_hour *= 0.7 + _below(detail, 0, 600) * 0.001
        seconds = 60 + int(miles / miles_per_hour * 3600.0)

        # The meter: $2.50, and 50 cents for each fifth of a mile or minute of standing (a fifth of the time).
        fare = 2.5 + 0.5 * math.floor(5.0 * miles + seconds * (0.2 / 60.0))
        extra = 0.5 if hour >= 20 or hour < 6 else (1.0 if hour >= 16 else 0.0)
        toll = 5.33 if _below(detail, 16, 1000) < places[place, 4] * 1000.0 else 0.0
        paid = _below(detail, 32, 1000)
        if paid < 530:
            payment = 0
            tip = math.floor(fare * (0.10 + _below(detail, 48, 150) * 0.001) * 100.0) * 0.01
        else:
            payment = 1 if paid < 990 else 2 + paid % 3
            tip = 0.0

        heading = choice >> np.uint64(10) & np.uint64(_HEADINGS_PER_PLACE - 1)
        from_longitude = places[place, 0] + east * places[place, 2] * _DEGREES_EAST_PER_M
        from_latitude = places[place, 1] + north * places[place, 3] * _DEGREES_NORTH_PER_M
        straight_m = miles * (_STRAIGHT_SHARE * _METRES_PER_MILE)
        to_longitude = from_longitude + headings[place, heading, 0] * straight_m * _DEGREES_EAST_PER_M
        to_latitude = from_latitude + headings[place, heading, 1] * straight_m * _DEGREES_NORTH_PER_M
        if _below(choice, 40, 65_536) < invalid_below:
            if choice >> np.uint64(63):
                from_longitude = from_latitude = 0.0
            else:
                to_longitude = to_latitude = 0.0

        car = np.int64((numbers & np.uint64(0xFFFFFFFF)) * np.uint64(MEDALLIONS) >> np.uint64(32))
        medallion[i] = car
        # Three drivers take turns in a car, and a driver works on two cars at most.
        hack_license[i] = car * 2 + _below(detail, 48, 3)
        vendor_id[i] = car & 1
        pickup_datetime[i] = ended_us - seconds * 1_000_000
        dropoff_datetime[i] = ended_us
        trip_time_in_secs[i] = seconds
        trip_distance[i] = miles
        pickup_longitude[i] = from_longitude
        pickup_latitude[i] = from_latitude
        dropoff_longitude[i] = to_longitude
        dropoff_latitude[i] = to_latitude
        payment_type[i] = payment
        fare_amount[i] = fare
        surcharge[i] = extra
        mta_tax[i] = 0.5
        tip_amount[i] = tip
        tolls_amount[i] = toll
        total_amount[i] = fare + extra + 0.5 + tip + toll
