"""Classification: which distribution the inter-arrival times of a slice follow (buffer limits V-A)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.diagnostic import lilliefors

from penstock.query.errors import PenstockError
from penstock.scaling.distributions import (
    Distribution,
    Family,
    deterministic,
    exponential,
    normal,
    pareto,
    uniform,
)

Floats = NDArray[np.float64]

#: Times that vary by less than this share of their mean are called constant.
CONSTANT_WITHIN = 0.01
FEWEST_TIMES = 8

_BINS = 10


@dataclass(frozen=True)
class Classified:
    """The distribution that fits best."""

    distribution: Distribution
    distance: float  # largest difference between its cdf and the measured one (Kolmogorov and Smirnov)
    p_value: float  # of the goodness-of-fit test


def classify(times_s: Floats, seed: int = 0) -> Classified:
    """The family whose cdf is nearest to the measured one.

    Parameters come from the moments, for the Pareto distribution from the maximum of the likelihood. All
    families are compared by the same distance; the winner's p-value is that of the Lilliefors test where
    there are tables for it (exponential, normal), else of a χ² test for homogeneity against a sample drawn
    from it.

    >>> classify(np.full(100, 0.2)).distribution.family.value
    'deterministic'
    """
    times = np.asarray(times_s, np.float64)
    if len(times) < FEWEST_TIMES or not np.isfinite(times).all() or (times < 0).any():
        raise PenstockError(
            f"cannot classify these times: got {len(times)}; it takes at least {FEWEST_TIMES}, none negative"
        )
    mean = float(times.mean())
    if mean == 0.0:
        raise PenstockError("cannot classify these times: all are zero; widen the slice")
    if float(times.std()) <= CONSTANT_WITHIN * mean:
        return Classified(deterministic(mean), 0.0, 1.0)
    candidates = [fitted for fit in _FITS if (fitted := fit(times)) is not None]
    measured = np.sort(times)
    distances = [_distance(measured, candidate) for candidate in candidates]
    best = int(np.argmin(distances))
    return Classified(candidates[best], distances[best], _p_value(times, candidates[best], seed))


def _fit_exponential(times: Floats) -> Distribution | None:
    return exponential(float(times.mean()))


def _fit_normal(times: Floats) -> Distribution | None:
    return normal(float(times.mean()), float(times.std(ddof=1)))


def _fit_uniform(times: Floats) -> Distribution | None:
    mean, spread = float(times.mean()), math.sqrt(3.0) * float(times.std(ddof=1))
    return uniform(mean - spread, mean + spread)


def _fit_pareto(times: Floats) -> Distribution | None:
    """Maximum likelihood; the smallest time must not be zero."""
    minimum = float(times.min())
    if minimum <= 0.0:
        return None
    return pareto(minimum, len(times) / float(np.log(times / minimum).sum()))


_FITS: tuple[Callable[[Floats], Distribution | None], ...] = (
    _fit_exponential,
    _fit_normal,
    _fit_uniform,
    _fit_pareto,
)


def _distance(measured: Floats, candidate: Distribution) -> float:
    """As ``scipy.stats.ks_1samp`` has it, without the p-value, which holds for given parameters only."""
    shares = np.arange(len(measured) + 1) / len(measured)
    expected = candidate.cdf(measured)
    return float(max((shares[1:] - expected).max(), (expected - shares[:-1]).max()))


def _p_value(times: Floats, candidate: Distribution, seed: int) -> float:
    tables = {Family.EXPONENTIAL: "exp", Family.NORMAL: "norm"}
    if candidate.family in tables:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells when a p-value lies outside its table
            return float(lilliefors(times, dist=tables[candidate.family])[1])
    drawn = candidate.sample(len(times), seed)
    edges = np.quantile(np.concatenate((times, drawn)), np.linspace(0, 1, _BINS + 1))
    edges = np.unique(edges)
    counts = np.array([np.histogram(values, edges)[0] for values in (times, drawn)])
    counts = counts[:, counts.sum(axis=0) > 0]
    return float(stats.chi2_contingency(counts).pvalue) if counts.shape[1] > 1 else 1.0
