"""The smallest degree that keeps a buffer limit with a required probability (buffer limits figure 5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy import special

from penstock.query.errors import PenstockError
from penstock.scaling.bounds import COVERED, arrivals_bound, service_bound
from penstock.scaling.distributions import Distribution, Family
from penstock.scaling.queueing import within_limit_mdc, within_limit_mmc

#: More instances than this are not looked at: no fleet has them.
MOST_INSTANCES = 1_000


@dataclass(frozen=True)
class Requirement:
    """What a queue has to keep: at most ``limit`` events in ``probability`` of the time."""

    limit: int = 15
    probability: float = 0.95

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise PenstockError(f"a buffer limit is a number of events: got {self.limit}; write e.g. 15")
        if not 0.0 < self.probability < 1.0:
            raise PenstockError(
                f"a required probability lies between 0 and 1: got {self.probability}; write e.g. 0.95"
            )


@dataclass(frozen=True)
class DegreeEstimate:
    """How many instances, and what they come to."""

    instances: int
    within_limit: float  # P(Q ≤ limit) with that many
    offered: float  # instances that would be busy all the time: arrival rate × service time
    #: False: no number of instances keeps the limit, as too many events are in service at once.
    #: ``instances`` is then the number from which on more do not help.
    attainable: bool = True


def least_degree(
    arrivals: Distribution, service: Distribution, requirement: Requirement, covered: float = COVERED
) -> DegreeEstimate:
    """The smallest degree for these inter-arrival and service times, both in seconds.

    Figure 5's search with its sum from n = 0, never below one instance and never at a load of 1 or above.

    >>> from penstock.scaling.distributions import exponential, uniform
    >>> least_degree(uniform(0.1, 0.2), exponential(0.3), Requirement(15, 0.95)).instances
    10
    """
    arriving, serving = arrivals_bound(arrivals, covered), service_bound(service, covered)
    offered = serving.mean / arriving.mean
    queue = within_limit_mmc if serving.family is Family.EXPONENTIAL else within_limit_mdc
    return degree_for(offered, queue, requirement)


def degree_for(
    offered: float, queue: Callable[[float, int, int], float], requirement: Requirement
) -> DegreeEstimate:
    """The search alone. P(Q ≤ limit) grows with the number of instances, so the first that fits is the least;
    it is found by doubling and halving."""
    fewest = math.floor(offered) + 1  # keeps the load below 1
    if fewest > MOST_INSTANCES:
        return DegreeEstimate(fewest, 0.0, offered, attainable=False)
    # without any waiting, Q is Poisson distributed: more is not to be had
    best = float(special.pdtr(requirement.limit, offered))
    attainable = best > requirement.probability
    wanted = requirement.probability if attainable else requirement.probability * best

    def fits(instances: int) -> bool:
        return queue(offered, instances, requirement.limit) >= wanted

    low, high = fewest, fewest
    while high < MOST_INSTANCES and not fits(high):
        low, high = high + 1, min(2 * high, MOST_INSTANCES)
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return DegreeEstimate(high, queue(offered, high, requirement.limit), offered, attainable)
