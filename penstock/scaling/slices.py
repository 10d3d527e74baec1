"""Time slices: the inter-arrival times that fell into one stretch of time (buffer limits V-A, figure 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.query.errors import PenstockError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TimeSlice:
    """The inter-arrival times of the arrivals in (start_s, end_s], each the time since the arrival before."""

    start_s: float
    end_s: float
    between_s: Floats

    @property
    def rate(self) -> float:
        """Arrivals a second."""
        whole = float(self.between_s.sum())
        return len(self.between_s) / whole if whole > 0.0 else 0.0


@dataclass(frozen=True)
class Slicing:
    """When a slice ends and how much it looks back on: by time, or by a number of arrivals.

    ``slices of 400`` means that slength = sfreq is as long as 400 arrivals take; then 95 % of the means are
    within 10 % of the true one for exponential times, and within 5 % for 1,600 (buffer limits V-D).
    """

    slength_s: float | None = None
    sfreq_s: float | None = None
    arrivals: int | None = None

    def __post_init__(self) -> None:
        by_time = self.slength_s is not None and self.sfreq_s is not None
        if by_time == (self.arrivals is not None):
            raise PenstockError(
                "a slice is either slength_s long, every sfreq_s, or a number of arrivals long: "
                f"got {self}; write Slicing(arrivals=400) or Slicing(slength_s=60, sfreq_s=10)"
            )
        for name in ("slength_s", "sfreq_s", "arrivals"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise PenstockError(f"{name} must be positive: a slicing got {value}; write e.g. 400")


class ArrivalLog:
    """What the splitter logs: arrival times, cut into slices as time goes on.

    Keeps no more arrivals than a slice looks back on.

    >>> log = ArrivalLog(Slicing(arrivals=2))
    >>> [found.rate for found in log.add(np.array([0.0, 1.0, 2.0, 2.5, 3.0]), 3.0)]
    [1.0, 2.0]
    """

    def __init__(self, slicing: Slicing) -> None:
        self._slicing = slicing
        self._times = np.zeros(0)
        self._last_cut_s: float | None = None

    def add(self, times_s: Floats, now_s: float) -> list[TimeSlice]:
        """Takes arrivals, in order, up to ``now_s``; gives the slices that are complete by then."""
        if self._last_cut_s is None and len(times_s):
            self._last_cut_s = float(times_s[0])
        self._times = np.concatenate((self._times, times_s))
        if self._last_cut_s is None:
            return []
        return self._by_count() if self._slicing.arrivals is not None else self._by_time(now_s)

    def export(self) -> dict[str, Floats]:
        """All that it must know to go on."""
        cut = [] if self._last_cut_s is None else [self._last_cut_s]
        return {"times": self._times.copy(), "last_cut": np.array(cut, np.float64)}

    def restore(self, state: Mapping[str, Floats]) -> None:
        """Takes in what ``export`` gave."""
        self._times = np.asarray(state["times"], np.float64)
        self._last_cut_s = float(state["last_cut"][0]) if len(state["last_cut"]) else None

    def _by_count(self) -> list[TimeSlice]:
        count = self._slicing.arrivals
        assert count is not None
        complete = (len(self._times) - 1) // count
        found = [_cut(self._times[n * count : (n + 1) * count + 1]) for n in range(complete)]
        self._times = self._times[max(complete, 0) * count :]
        return found

    def _by_time(self, now_s: float) -> list[TimeSlice]:
        length_s, every_s = self._slicing.slength_s, self._slicing.sfreq_s
        assert length_s is not None
        assert every_s is not None
        assert self._last_cut_s is not None
        found = []
        while self._last_cut_s + every_s <= now_s:
            end_s = self._last_cut_s = self._last_cut_s + every_s
            first = int(np.searchsorted(self._times, end_s - length_s, side="right"))
            last = int(np.searchsorted(self._times, end_s, side="right"))
            inside = self._times[max(first - 1, 0) : last]
            if len(inside) >= 2:
                found.append(TimeSlice(end_s - length_s, end_s, np.diff(inside)))
            # one arrival before the next slice's start is the one that its first time counts from
            keep = int(np.searchsorted(self._times, end_s + every_s - length_s, side="right"))
            self._times = self._times[max(keep - 1, 0) :]
        return found


def _cut(times: Floats) -> TimeSlice:
    return TimeSlice(float(times[0]), float(times[-1]), np.diff(times))
