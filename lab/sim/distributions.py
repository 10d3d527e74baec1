"""How long one event takes: distributions that are summed over a group of events, not drawn one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

#: Up to this many draws are made one by one; the sum of more is normal for all that matters.
_FEW = 64


class RandomDuration(Protocol):
    """A non-negative random duration."""

    @property
    def mean_ns(self) -> float: ...

    def total_ns(self, count: int, random: np.random.Generator) -> float:
        """The sum of ``count`` independent draws."""
        ...

    def scaled(self, factor: float) -> RandomDuration:
        """The same shape with another mean."""
        ...


@dataclass(frozen=True)
class Constant:
    """Always the same: M/D/1's service time."""

    mean_ns: float

    def total_ns(self, count: int, random: np.random.Generator) -> float:
        return self.mean_ns * count

    def scaled(self, factor: float) -> Constant:
        return Constant(self.mean_ns * factor)


@dataclass(frozen=True)
class Exponential:
    """Memoryless: M/M/1's service time. The sum of n is a gamma variable, drawn at once."""

    mean_ns: float

    def total_ns(self, count: int, random: np.random.Generator) -> float:
        return float(random.standard_gamma(count)) * self.mean_ns if count else 0.0

    def scaled(self, factor: float) -> Exponential:
        return Exponential(self.mean_ns * factor)


@dataclass(frozen=True)
class LogNormal:
    """Skewed, as measured costs are. ``sigma`` is the standard deviation of the logarithm."""

    mean_ns: float
    sigma: float

    def total_ns(self, count: int, random: np.random.Generator) -> float:
        if count == 0:
            return 0.0
        if count <= _FEW:
            mu = math.log(self.mean_ns) - self.sigma**2 / 2
            return float(random.lognormal(mu, self.sigma, count).sum())
        deviation = self.mean_ns * math.sqrt(math.expm1(self.sigma**2) * count)
        return max(self.mean_ns, self.mean_ns * count + deviation * float(random.standard_normal()))

    def scaled(self, factor: float) -> LogNormal:
        return LogNormal(self.mean_ns * factor, self.sigma)
