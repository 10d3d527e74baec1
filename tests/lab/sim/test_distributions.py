"""Sums of durations: the mean and the spread of n draws made at once are those of n single draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lab.sim.distributions import Constant, Exponential, LogNormal, RandomDuration


@pytest.mark.parametrize(
    ("distribution", "deviation_ns"),
    [
        (Constant(100.0), 0.0),
        (Exponential(100.0), 100.0),
        (LogNormal(100.0, 0.5), 100.0 * math.sqrt(math.expm1(0.25))),
    ],
)
@pytest.mark.parametrize("count", [1, 10, 400])
def test_sums_have_the_right_mean_and_spread(
    distribution: RandomDuration, deviation_ns: float, count: int
) -> None:
    random = np.random.default_rng(7)
    sums = np.array([distribution.total_ns(count, random) for _ in range(4_000)])
    assert sums.mean() == pytest.approx(100.0 * count, rel=0.05)
    assert sums.std() == pytest.approx(deviation_ns * math.sqrt(count), rel=0.1)
    assert (sums > 0).all()


@pytest.mark.parametrize("distribution", [Constant(8.0), Exponential(8.0), LogNormal(8.0, 0.3)])
def test_nothing_takes_no_time_and_scaling_keeps_the_shape(distribution: RandomDuration) -> None:
    assert distribution.total_ns(0, np.random.default_rng(0)) == 0.0
    assert distribution.scaled(2.0).mean_ns == 16.0
