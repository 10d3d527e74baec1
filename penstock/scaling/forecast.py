"""Forecasts of the arrival rate, a time horizon ahead of the last slice (buffer limits V-A)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from statsmodels.regression.linear_model import OLS
from statsmodels.tsa.holtwinters import ExponentialSmoothing, Holt

from penstock.query.errors import PenstockError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ObservedRate:
    """The arrival rate of one slice, at the time that its slice ended."""

    at_s: float
    rate: float


class Forecast(Protocol):
    """Rates seen so far, oldest first → the rate ``horizon_s`` after the last one."""

    @property
    def name(self) -> str: ...

    def ahead(self, seen: Sequence[ObservedRate], horizon_s: float) -> float: ...


@dataclass(frozen=True)
class Naive:
    """What was seen last will go on: what the paper evaluates with."""

    name: str = "naive"

    def ahead(self, seen: Sequence[ObservedRate], horizon_s: float) -> float:
        return _last(seen)


@dataclass(frozen=True)
class Trend:
    """A level and a trend, both smoothed (Holt). It extends the trend of the last slices over the horizon
    and over the half slice by which a slice's mean is older than its end."""

    looks_back: int = 20  # slices; older ones do not tell of the trend
    smoothing_level: float = 0.5
    smoothing_trend: float = 0.2
    name: str = "trend"

    def ahead(self, seen: Sequence[ObservedRate], horizon_s: float) -> float:
        if len(seen) < 3:
            return _last(seen)
        every_s, rates = _evenly(seen[-self.looks_back :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted: Any = Holt(rates, initialization_method="estimated").fit(
                smoothing_level=self.smoothing_level,
                smoothing_trend=self.smoothing_trend,
                optimized=False,
            )
        return _at(fitted, horizon_s / every_s + 0.5)


@dataclass(frozen=True)
class RateLine:
    """A straight line through the rates of the last slices, by least squares, where its slope is
    significant; else their median. The noise of single slices does not reach the forecast, however far
    ahead it is.
    """

    looks_back_s: float = 1800.0
    fewest: int = 5  # slices, also where they are further back
    significance: float = 0.05
    name: str = "line"

    def ahead(self, seen: Sequence[ObservedRate], horizon_s: float) -> float:
        if len(seen) < self.fewest:
            return _last(seen)
        count = sum(one.at_s >= seen[-1].at_s - self.looks_back_s for one in seen)
        recent = seen[-max(count, self.fewest) :]
        ends = np.array([one.at_s for one in recent])
        rates = np.array([one.rate for one in recent])
        before = seen[-len(recent) - 1].at_s if len(seen) > len(recent) else 2 * ends[0] - ends[1]
        middles = (ends + np.concatenate(([before], ends[:-1]))) / 2  # a slice's rate is that of its middle
        if np.ptp(rates) == 0.0:
            return float(rates[0])
        fitted: Any = OLS(rates, np.column_stack((np.ones(len(rates)), middles - ends[-1]))).fit()
        if fitted.pvalues[1] < self.significance:
            return max(0.0, float(fitted.params @ [1.0, horizon_s]))
        return float(np.median(rates))


@dataclass(frozen=True)
class Seasonal:
    """A level, a trend and a season that repeats (Holt and Winters), e.g. the days of a road.

    Until two whole seasons have been seen it goes on with the last rate.
    """

    season_s: float
    steps: int = 48  # a season is looked at in so many steps
    name: str = "seasonal"

    def __post_init__(self) -> None:
        if not (self.season_s > 0 and self.steps >= 2):
            raise PenstockError(
                f"a season has a length and at least two steps: got {self.season_s} s and {self.steps}"
            )

    def ahead(self, seen: Sequence[ObservedRate], horizon_s: float) -> float:
        if len(seen) < 3 or seen[-1].at_s - seen[0].at_s < 2 * self.season_s:
            return _last(seen)
        every_s, rates = _evenly(seen, self.season_s / self.steps)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted: Any = ExponentialSmoothing(
                rates,
                trend="add",
                damped_trend=True,
                seasonal="add",
                seasonal_periods=self.steps,
                initialization_method="estimated",
            ).fit()
        return _at(fitted, horizon_s / every_s)


def _last(seen: Sequence[ObservedRate]) -> float:
    if not seen:
        raise PenstockError("nothing to forecast from: no slice is complete yet")
    return seen[-1].rate


def _evenly(seen: Sequence[ObservedRate], every_s: float | None = None) -> tuple[float, Floats]:
    """The rates at even distances back from the last, by default that of the last two slices."""
    times = np.array([one.at_s for one in seen])
    rates = np.array([one.rate for one in seen])
    step_s = every_s if every_s is not None else float(times[-1] - times[-2])
    if step_s <= 0.0:
        raise PenstockError(f"slices must follow each other in time: two end at {times[-1]} s")
    count = math.floor((times[-1] - times[0]) / step_s) + 1
    at = times[-1] - step_s * np.arange(max(count, 3) - 1, -1, -1)
    return step_s, np.interp(at, times, rates)


def _at(fitted: Any, steps: float) -> float:
    """The forecast so many steps ahead, between whole steps in a straight line; a rate is never negative."""
    whole = max(1, math.ceil(steps))
    ahead = np.asarray(fitted.forecast(whole))
    last = float(np.asarray(fitted.level)[-1]) if steps < 1 else float(ahead[0])
    if steps < 1:
        found = last + steps * (float(ahead[0]) - last)
    else:
        found = float(np.interp(steps, np.arange(1, whole + 1), ahead))
    return max(0.0, found)
