"""How long the queue of M/M/c and M/D/c is: exact, and stable for a thousand instances at 99.9 % load.

The number that counts is that of all events the splitter has not discarded: an event leaves its queue when
it is acknowledged, so those in service are in it too.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from penstock.query.errors import PenstockError

Floats = NDArray[np.float64]

_NEGLIGIBLE = 1e-16
_FEWEST_POINTS = 1 << 8
_MOST_POINTS = 1 << 20


def within_limit_mmc(offered: float, instances: int, limit: int) -> float:
    """P(Q ≤ limit) of M/M/c, where ``offered`` is arrival rate × mean service time.

    In terms of the Poisson distribution of mean ``offered`` nothing over- or underflows: below c the two are
    proportional, from c on the chain is geometric.
    """
    _check(offered, instances, limit)
    if offered == 0.0:
        return 1.0
    load = offered / instances
    below = _poisson_cdf(instances - 1, offered)
    at_c = _poisson(instances, offered)
    whole = below + at_c / (1.0 - load)
    if limit < instances:
        return float(_poisson_cdf(limit, offered) / whole)
    beyond = at_c * load ** (limit - instances + 1) / (1.0 - load)
    return float(1.0 - beyond / whole)


def waits_mmc(offered: float, instances: int) -> float:
    """The probability that an arrival must wait in M/M/c: Erlang's C."""
    return 1.0 - within_limit_mmc(offered, instances, instances - 1)


def within_limit_mdc(offered: float, instances: int, limit: int) -> float:
    """P(Q ≤ limit) of M/D/c, where ``offered`` is arrival rate × service time.

    After one service time everything that was in service has left, so Q = L + A with L waiting before and A
    arrivals since, independent of each other; A is Poisson distributed.
    """
    _check(offered, instances, limit)
    if offered == 0.0:
        return 1.0
    waiting = waiting_mdc(offered, instances)[: limit + 1]
    below = float(waiting @ _poisson_cdf(limit - np.arange(len(waiting)), offered))
    return min(1.0, below)


def lengths_mdc(offered: float, instances: int, longest: int) -> Floats:
    """P(Q = n) of M/D/c for n = 0 to ``longest``."""
    below = np.array([within_limit_mdc(offered, instances, limit) for limit in range(longest + 1)])
    return np.diff(below, prepend=0.0)


def waiting_mdc(offered: float, instances: int) -> Floats:
    """P(L = n) of the number of waiting events in M/D/c, up to where it is negligible.

    L' = max(L + A − c, 0) is a random walk with a wall, so its generating function is f₊(1) / f₊(z) where
    1 − z⁻ᶜ exp(a (z − 1)) = f₊(z) f₋(z), with powers of z in the one and of 1/z in the other (Wiener and
    Hopf). The logarithm is split with a Fourier transform on the circle |z| = 1/ρ, on which |z⁻ᶜ exp(a (z
    − 1))| is smallest and below 1: no root needs to be found and no branch to be chosen.
    """
    _check(offered, instances, 0)
    return _waiting_mdc(float(offered), int(instances))


@lru_cache(maxsize=4096)
def _waiting_mdc(offered: float, instances: int) -> Floats:
    load = offered / instances
    points = _points(load)
    angles = 2.0 * np.pi * np.arange(points) / points
    # a (z − 1) − c log z at z = exp(iφ) / ρ
    exponent = instances * (np.exp(1j * angles) - load + np.log(load)) - 1j * instances * angles
    powers = np.fft.fft(np.log(-np.expm1(exponent))).real / points  # 0, 1, ... and, from the end, −1, −2, ...
    powers[0] = 0.0
    powers[points // 2 :] = 0.0
    generating = np.exp(-np.fft.ifft(powers) * points)
    found: Floats = (np.fft.fft(generating) / points).real[: points // 2]
    found = np.maximum(found, 0.0) * np.exp(np.arange(points // 2) * np.log(load))
    found /= found.sum()
    found.setflags(write=False)  # it is shared by all who ask
    return found


def _points(load: float) -> int:
    """Enough for both halves to fade out: like ρⁿ inwards and (ρτ)⁻ⁿ outwards, where τ > 1 solves
    τᶜ = exp(a (τ − 1))."""
    rising = -float(special.lambertw(-load * np.exp(-load), -1).real) if load > 1e-100 else np.e  # ρτ
    decay = max(min(-np.log(load), np.log(rising)), 1e-9)
    wanted = -2.0 * np.log(_NEGLIGIBLE) / decay
    return int(np.clip(2 ** np.ceil(np.log2(wanted)), _FEWEST_POINTS, _MOST_POINTS))


def _poisson(count: int, mean: float) -> float:
    return float(np.exp(special.xlogy(count, mean) - mean - special.gammaln(count + 1)))


def _poisson_cdf(count: int | NDArray[np.int64], mean: float) -> Floats:
    found: Floats = special.pdtr(count, mean)
    return found


def _check(offered: float, instances: int, limit: int) -> None:
    if instances < 1:
        raise PenstockError(f"a queue needs at least one instance: got {instances}")
    if limit < 0:
        raise PenstockError(f"a buffer limit is a number of events: got {limit}; write e.g. 15")
    if not 0.0 <= offered < instances:
        raise PenstockError(
            f"the queue has no stationary length: {instances} instances are offered {offered:.6g} at a time; "
            f"it takes more than that, at least {int(offered) + 1 if offered >= 0 else 1}"
        )
