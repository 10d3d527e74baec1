"""Bounds: other distributions are replaced by ones whose queue is known, on the safe side (buffer limits
V-C)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from penstock.scaling.distributions import Distribution, Family, deterministic, exponential

Floats = NDArray[np.float64]

#: The bound holds for cdf values up to here: an exponential cdf never stays above one that reaches 1.
COVERED = 0.99

_GRID = 2000


def arrivals_bound(found: Distribution, covered: float = COVERED) -> Distribution:
    """The exponential distribution with the largest mean whose cdf is nowhere below ``found``'s: it yields
    arrivals that are closer together. Only exponential arrivals have known queues here.

    >>> from penstock.scaling.distributions import pareto, uniform
    >>> round(arrivals_bound(uniform(0.1, 0.2)).mean, 5)
    0.04321
    >>> round(arrivals_bound(pareto(0.05, 2.0)).mean, 5)
    0.06796
    """
    if found.family is Family.EXPONENTIAL:
        return found
    if found.family is Family.DETERMINISTIC:
        return exponential(found.quantile(covered) / -math.log1p(-covered))

    # Times are positive, but a normal cdf is above zero already at 0, where no exponential one is: near 0 the
    # bound would have no mean at all. So it is that of the positive times.
    negative = float(found.cdf(np.zeros(1))[0]) if found.family is Family.NORMAL else 0.0

    def times(shares: Floats) -> Floats:
        return found.quantiles(negative + shares * (1.0 - negative))

    # 1 − exp(−x / m) ≥ F(x) is m ≤ x / −ln(1 − F(x)), for every x
    def means(shares: Floats) -> Floats:
        return times(shares) / -np.log1p(-shares)

    shares = np.linspace(1e-6, covered, _GRID)
    shares = shares[times(shares) > 0.0]
    best = int(np.argmin(means(shares)))
    around = (shares[max(best - 1, 0)], shares[min(best + 1, len(shares) - 1)])
    refined = optimize.minimize_scalar(
        lambda share: means(np.array([share]))[0],
        bounds=around,
        method="bounded",
        options={"xatol": 1e-10},
    )
    smallest = min(float(means(shares)[best]), float(refined.fun))
    return exponential(smallest)


def service_bound(found: Distribution, covered: float = COVERED) -> Distribution:
    """An exponential service time as it is; for all others, the constant that ``covered`` of them stay below.

    >>> from penstock.scaling.distributions import pareto, uniform
    >>> service_bound(uniform(0.1, 0.2)).mean, round(service_bound(pareto(0.05, 2.0)).mean, 9)
    (0.199, 0.5)
    """
    if found.family in (Family.EXPONENTIAL, Family.DETERMINISTIC):
        return found
    return deterministic(found.quantile(covered))
