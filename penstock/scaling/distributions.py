"""The five distributions that inter-arrival and service times are classified into (buffer limits V-A)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from penstock.query.errors import PenstockError

Floats = NDArray[np.float64]


class Family(Enum):
    """Which distribution; its value is its name in files and metrics."""

    EXPONENTIAL = "exponential"
    DETERMINISTIC = "deterministic"
    NORMAL = "normal"
    UNIFORM = "uniform"
    PARETO = "pareto"


#: How many parameters each has, and what they are called.
PARAMETERS: dict[Family, tuple[str, ...]] = {
    Family.EXPONENTIAL: ("mean",),
    Family.DETERMINISTIC: ("value",),
    Family.NORMAL: ("mean", "deviation"),
    Family.UNIFORM: ("low", "high"),
    Family.PARETO: ("minimum", "shape"),
}


@dataclass(frozen=True)
class Distribution:
    """A distribution of times in seconds; make one with the functions below.

    >>> uniform(0.1, 0.2).quantile(0.99)
    0.199
    >>> round(pareto(0.05, 2.0).quantile(0.99), 9)
    0.5
    """

    family: Family
    parameters: tuple[float, ...]

    def __post_init__(self) -> None:
        names = PARAMETERS[self.family]
        given = dict(zip(names, self.parameters, strict=True))
        scales = [value for name, value in given.items() if name not in ("low", "deviation")]
        fits = all(math.isfinite(value) for value in self.parameters) and all(value > 0 for value in scales)
        fits = fits and given.get("deviation", 1.0) > 0 and given.get("low", 0.0) <= given.get("high", 1.0)
        if not fits:
            raise PenstockError(
                f"these parameters make no distribution of times: {self.family.value} got {given}; "
                "times and shapes are positive numbers, and low is not above high"
            )

    @property
    def mean(self) -> float:
        """The mean time; infinite for a Pareto distribution whose shape is at most 1."""
        return float(self._frozen().mean()) if self._varies else self.parameters[0]

    @property
    def deviation(self) -> float:
        """The standard deviation; it may be infinite too."""
        return float(self._frozen().std()) if self._varies else 0.0

    def cdf(self, times: Any) -> Any:
        """The share of times that are at most this long."""
        times = np.asarray(times, np.float64)
        if not self._varies:
            return np.where(times >= self.parameters[0], 1.0, 0.0)
        first, *others = self.parameters
        match self.family:  # in closed form: scipy's own takes a millisecond to be made
            case Family.EXPONENTIAL:
                return -np.expm1(-np.maximum(times, 0.0) / first)
            case Family.UNIFORM:
                return np.clip((times - first) / (others[0] - first), 0.0, 1.0)
            case Family.PARETO:
                return 1.0 - (first / np.maximum(times, first)) ** others[0]
            case Family.NORMAL | Family.DETERMINISTIC:  # the latter does not vary
                return special.ndtr((times - first) / others[0])
            case _ as family:
                assert_never(family)

    def quantile(self, share: float) -> float:
        """The time that this share of all times does not exceed."""
        return float(self.quantiles(np.array([share]))[0])

    def quantiles(self, shares: Floats) -> Floats:
        """The same for many shares at once, in closed form where there is one."""
        first, *others = self.parameters
        match self.family:
            case Family.EXPONENTIAL:
                return -first * np.log1p(-shares)
            case Family.UNIFORM:
                return first + shares * (others[0] - first)
            case Family.PARETO:
                return first * (1.0 - shares) ** (-1.0 / others[0])
            case Family.NORMAL:
                return first + others[0] * np.asarray(special.ndtri(shares), np.float64)
            case Family.DETERMINISTIC:
                return np.full(len(shares), first)
            case _ as family:
                assert_never(family)

    def sample(self, count: int, seed: int | np.random.Generator = 0) -> Floats:
        """Random times; none is negative, so that they can be waited for."""
        if not self._varies:
            return np.full(count, self.parameters[0])
        drawn: Floats = np.asarray(self._frozen().rvs(count, random_state=np.random.default_rng(seed)))
        return np.maximum(drawn, 0.0)

    def scaled(self, factor: float) -> Distribution:
        """The distribution of times that are all ``factor`` times as long."""
        kept = tuple(
            value if name == "shape" else value * factor
            for name, value in zip(PARAMETERS[self.family], self.parameters, strict=True)
        )
        return Distribution(self.family, kept)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "family": self.family.value}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Distribution:
        return cls(Family(found["family"]), tuple(float(value) for value in found["parameters"]))

    @property
    def _varies(self) -> bool:
        flat = self.family is Family.UNIFORM and self.parameters[0] == self.parameters[1]
        return self.family is not Family.DETERMINISTIC and not flat

    def _frozen(self) -> Any:
        first, *others = self.parameters
        match self.family:
            case Family.EXPONENTIAL:
                return stats.expon(scale=first)
            case Family.NORMAL:
                return stats.norm(first, others[0])
            case Family.UNIFORM:
                return stats.uniform(first, others[0] - first)
            case Family.PARETO:
                return stats.pareto(others[0], scale=first)
            case Family.DETERMINISTIC:
                raise TypeError(f"it does not vary: {self}")
            case _ as family:
                assert_never(family)


def exponential(mean: float) -> Distribution:
    return Distribution(Family.EXPONENTIAL, (mean,))


def deterministic(value: float) -> Distribution:
    return Distribution(Family.DETERMINISTIC, (value,))


def normal(mean: float, deviation: float) -> Distribution:
    return Distribution(Family.NORMAL, (mean, deviation))


def uniform(low: float, high: float) -> Distribution:
    return Distribution(Family.UNIFORM, (low, high))


def pareto(minimum: float, shape: float) -> Distribution:
    return Distribution(Family.PARETO, (minimum, shape))
