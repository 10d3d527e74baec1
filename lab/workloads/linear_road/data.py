"""The position reports of the Linear Road benchmark, addressable by offset.

Every place on the road is taken by one car after the other; a place reports every 30 s. What a car does on
its trip follows from a hash of place and trip in closed form, so any event can be made without those before
it. Cars that share an accident stand at neighbouring places, which begin and end their trips together.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

#: The benchmark's record, 15 integers, and in front of it its event time: ``time_s`` as a timestamp.
FIELDS: tuple[tuple[str, str], ...] = (
    ("ts", "timestamp"),
    ("type", "int32"),
    ("time_s", "int32"),
    ("vid", "int32"),
    ("speed", "int32"),
    ("xway", "int32"),
    ("lane", "int32"),
    ("dir", "int32"),
    ("seg", "int32"),
    ("pos", "int32"),
    ("qid", "int32"),
    ("s_init", "int32"),
    ("s_end", "int32"),
    ("dow", "int32"),
    ("tod", "int32"),
    ("day", "int32"),
)
VOCABULARY: dict[str, tuple[str, ...]] = {}

REPORT_S = 30  # a car reports this often
FEET_PER_SEGMENT = 5280
SEGMENTS = 100
ROAD_FT = SEGMENTS * FEET_PER_SEGMENT
FEET_PER_MPH = 44  # how far one mile an hour carries in 30 s
REQUEST_EVERY = 100  # one record in so many is no position report
CARS_PER_PLACE = (
    11  # cars that take turns at a place: 370,000 for the 33,000 that are on an expressway at once
)
MOST_PLACES = 100_000_000  # so that a car's number fits

_FEWEST_REPORTS, _REPORTS_SPREAD = 24, 32  # of a trip
_ZONES = 10  # stretches of road with a speed of their own
_ZONE_FT = ROAD_FT // _ZONES
_JAMMED_OF_16 = 5
_SWAY = 7  # mph by which a car's speed goes up and down


@dataclass(frozen=True)
class LinearRoadSettings:
    """What the events depend on, besides their offset.

    cars: how many are on each expressway at once. They fix how many events share a second of event time;
        at whatever rate the events are read, event time advances with it.
    accident_share: of all trips, how many end up in an accident of two cars; as many cars break down alone.
    base_us: the event time of ``time_s`` 0.

    >>> LinearRoadSettings(expressways=2, cars=29_700).events_per_second
    2000.0
    """

    seed: int = 0
    expressways: int = 1
    cars: int = 33_000
    accident_share: float = 0.001
    base_us: int = 0

    def __post_init__(self) -> None:
        for name in ("expressways", "cars"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be positive: linear_road got {getattr(self, name)}; write e.g. 2"
                )
        if self.places > MOST_PLACES:
            raise ValueError(
                f"too many cars: linear_road got {self.places} on all expressways; it takes {MOST_PLACES}"
            )
        if not 0 <= self.accident_share <= 0.5:
            raise ValueError(
                f"accident_share must be at most a half: linear_road got {self.accident_share}; write 0.001"
            )

    @property
    def places(self) -> int:
        """Cars on all expressways at once."""
        return self.expressways * self.cars

    @property
    def events_per_second(self) -> float:
        """Events, requests included, in a second of event time."""
        return self.places * REQUEST_EVERY / (REPORT_S * (REQUEST_EVERY - 1))

    @classmethod
    def at(cls, rate: float, speedup: float, **others: Any) -> "LinearRoadSettings":
        """As many cars as make ``rate`` events a second while event time runs ``speedup`` times as fast as
        the clock.

        >>> LinearRoadSettings.at(1_000_000, 60.0, expressways=3).cars
        165000
        """
        expressways = int(others.get("expressways", 1))
        per_second = rate / speedup / expressways
        return cls(cars=max(1, round(per_second * REPORT_S * (REQUEST_EVERY - 1) / REQUEST_EVERY)), **others)


class LinearRoadEvents:
    """The endless sequence of records that one choice of settings stands for.

    >>> columns = {name: np.empty(300, np.int64) for name, _ in FIELDS}
    >>> LinearRoadEvents(LinearRoadSettings(cars=100)).fill(0, 300, columns, 0)
    >>> (columns["type"] != 0).sum(), columns["time_s"][[0, 50, 101]].tolist()
    (3, [0, 15, 30])
    """

    def __init__(self, settings: LinearRoadSettings) -> None:
        self.settings = settings
        self._key = np.uint64(np.random.SeedSequence(settings.seed).generate_state(1, np.uint64)[0])

    def fill(self, offset: int, n: int, columns: dict[str, NDArray[Any]], start: int) -> None:
        """Write the records [offset, offset + n) into ``columns`` from position ``start`` on."""
        settings = self.settings
        _fill(
            offset,
            self._key,
            settings.places,
            settings.expressways,
            int(settings.accident_share * (1 << 24)),
            settings.base_us,
            *(columns[name][start : start + n] for name, _ in FIELDS),
        )


@njit(inline="always")
def _mixed(bits: Any) -> Any:
    """The bits well stirred: every bit of the result depends on every bit given."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@njit(inline="always")
def _below(bits: Any, shift: int, limit: Any) -> Any:
    """A number below ``limit`` from the 16 bits at ``shift``."""
    return np.int64(((bits >> np.uint64(shift)) & np.uint64(0xFFFF)) * np.uint64(limit) >> np.uint64(16))


@njit(inline="always")
def _sway(bits: Any, moves: Any) -> Any:
    """How far ahead of its mean speed a car is after so many moves, in steps of 44 feet; nothing at first."""
    stirred = (bits ^ np.uint64(moves) * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((stirred >> np.uint64(48)) & np.uint64(_SWAY)) if moves > 0 else np.int64(0)


@njit(nogil=True, cache=True)
def _fill(
    offset: int,
    key: np.uint64,
    places: int,
    expressways: int,
    accidents_below: int,
    base_us: int,
    ts: NDArray[np.int64],
    kind: NDArray[np.int32],
    time_s: NDArray[np.int32],
    vid: NDArray[np.int32],
    speed: NDArray[np.int32],
    xway: NDArray[np.int32],
    lane: NDArray[np.int32],
    direction: NDArray[np.int32],
    seg: NDArray[np.int32],
    pos: NDArray[np.int32],
    qid: NDArray[np.int32],
    s_init: NDArray[np.int32],
    s_end: NDArray[np.int32],
    dow: NDArray[np.int32],
    tod: NDArray[np.int32],
    day: NDArray[np.int32],
) -> None:
    golden = np.uint64(0x9E3779B97F4A7C15)
    within = offset % REQUEST_EVERY
    # A request comes after the report before it, of the same car: both have that report's number.
    number = offset - offset // REQUEST_EVERY - (1 if within == REQUEST_EVERY - 1 else 0)
    # Invariant: the report is that of ``place`` in round ``rounds``, at second = rounds * 30 + place * 30 //
    # places, and ``fraction`` is the rest of that division. Counted up, not divided for.
    rounds, place = number // places, number % places
    second = rounds * REPORT_S + place * REPORT_S // places
    fraction = place * REPORT_S % places
    for i in range(ts.size):
        pair = place >> 1
        is_second = place & 1
        habits = _mixed(key + np.uint64(pair) * golden)
        reports = np.int32(_FEWEST_REPORTS + _below(habits, 0, _REPORTS_SPREAD))
        age = rounds + _below(habits, 16, _FEWEST_REPORTS)
        trip = age // reports
        report = np.int64(age - trip * reports)
        road = pair % expressways
        car = place + places * (trip % CARS_PER_PLACE)
        ts[i] = base_us + second * 1_000_000
        time_s[i] = second
        vid[i] = car
        if within == REQUEST_EVERY - 1:
            asked = offset + i
            bits = _mixed(key ^ np.uint64(asked) * golden)
            wanted = 2 + _below(bits, 0, 3)
            kind[i] = wanted
            speed[i] = lane[i] = direction[i] = seg[i] = pos[i] = -1
            xway[i] = road if wanted > 2 else -1
            qid[i] = (asked // REQUEST_EVERY) & 0x7FFFFFFF
            s_init[i] = _below(bits, 8, SEGMENTS) if wanted == 4 else -1
            s_end[i] = _below(bits, 16, SEGMENTS) if wanted == 4 else -1
            dow[i] = 1 + _below(bits, 24, 7) if wanted == 4 else -1
            tod[i] = 1 + _below(bits, 32, 1440) if wanted == 4 else -1
            day[i] = 1 + _below(bits, 40, 69) if wanted == 3 else -1
        else:
            first = _mixed(habits + np.uint64(trip) * np.uint64(0xD1B54A32D192ED03))
            fate = np.int64(first & np.uint64(0xFFFFFF))
            is_accident = fate < accidents_below
            stops = is_accident or (is_second == 0 and fate < 2 * accidents_below)
            own = first if is_second == 0 else _mixed(first)
            bits = first if is_accident else own

            # Where the car stands still: after ``halt`` moves, for ``still`` reports.
            halt = 4 + _below(bits, 24, np.int64(reports) - 17) if stops else np.int64(1 << 20)
            still = 4 + np.int64(bits >> np.uint64(62))
            moves = report if report <= halt else max(halt, report - still)
            stands = halt < report <= halt + still

            going = np.int64((bits >> np.uint64(40)) & np.uint64(1))
            zone = _below(bits, 44, _ZONES)
            zone_bits = _mixed(key ^ np.uint64((road * 2 + going) * _ZONES + zone) * golden)
            jammed = np.int64(zone_bits & np.uint64(15)) < _JAMMED_OF_16
            mean = (15 if jammed else 45) + np.int64((bits >> np.uint64(41)) & np.uint64(15))
            # The other car comes to an accident in its own way, and from there on they go together.
            ahead = _sway(own if moves < halt else bits, moves)
            behind = _sway(own if moves <= halt else bits, moves - 1)
            enters = zone * _ZONE_FT + _below(bits, 46, _ZONE_FT)
            enters = min(enters, ROAD_FT - 1 - FEET_PER_MPH * (mean * (np.int64(reports) - 1) + _SWAY))
            at = enters + FEET_PER_MPH * (mean * moves + ahead)
            at = at if going == 0 else ROAD_FT - 1 - at

            kind[i] = 0
            speed[i] = 0 if stands else mean + (ahead - behind if moves > 0 else 0)
            xway[i] = road
            if report == 0:
                lane[i] = 0
            elif report == reports - 1:
                lane[i] = 4
            else:
                lane[i] = 1 + (np.int64(bits >> np.uint64(57)) + (moves >> 2)) % 3
            direction[i] = going
            seg[i] = at // FEET_PER_SEGMENT
            pos[i] = at
            qid[i] = s_init[i] = s_end[i] = dow[i] = tod[i] = day[i] = -1

        within += 1
        if within == REQUEST_EVERY:
            within = 0
        if within != REQUEST_EVERY - 1:
            place += 1
            fraction += REPORT_S
            while fraction >= places:
                fraction -= places
                second += 1
            if place == places:
                place = 0
                rounds += 1
