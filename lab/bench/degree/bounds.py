"""Figure 8(e): queues under uniform and Pareto distributions, with the degrees that their bounds give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.sim.queue_lengths import QueueLengths
from penstock.scaling.degree import Requirement, least_degree
from penstock.scaling.distributions import Distribution, exponential, pareto, uniform

Floats = NDArray[np.float64]

#: Section VI-C: inter-arrival and service times, and the degree that the paper states.
EXPERIMENTS: dict[str, tuple[Distribution, Distribution, int]] = {
    "uniform_workload": (uniform(0.1, 0.2), exponential(0.3), 10),
    "uniform_service": (exponential(0.04), uniform(0.1, 0.2), 6),
    "pareto_workload": (pareto(0.05, 2.0), exponential(0.3), 6),
    "pareto_service": (exponential(0.2 / 3.0), pareto(0.05, 2.0), 10),
}


@dataclass(frozen=True)
class Bounded:
    """One experiment: the degree we derive, the paper's, and the queue with ours."""

    degree: int
    paper: int
    queue: QueueLengths


def run_bounds(requirement: Requirement, events: int, seed: int = 0) -> dict[str, Bounded]:
    """Each experiment with so many events, one instance an event, first come first served."""
    return {
        name: _run(arrivals, service, paper, requirement, events, seed)
        for name, (arrivals, service, paper) in EXPERIMENTS.items()
    }


def _run(
    arrivals: Distribution,
    service: Distribution,
    paper: int,
    requirement: Requirement,
    events: int,
    seed: int,
) -> Bounded:
    random = np.random.default_rng(seed)
    degree = least_degree(arrivals, service, requirement).instances
    arrived = np.cumsum(arrivals.sample(events, random))
    left = served(arrived, service.sample(events, random), degree)
    return Bounded(degree, paper, QueueLengths.of(arrived, left, float(arrived[-1])))


def served(arrived: Floats, service_s: Floats, instances: int) -> Floats:
    """When each event is done: it goes to the instance that is free first.

    >>> served(np.array([0.0, 1.0, 2.0]), np.array([5.0, 1.0, 1.0]), 2).tolist()
    [5.0, 2.0, 3.0]
    """
    free = np.zeros(instances)
    left = np.empty(len(arrived))
    for k, (at, takes) in enumerate(zip(arrived.tolist(), service_s.tolist(), strict=True)):
        first = int(free.argmin())
        left[k] = free[first] = max(at, free[first]) + takes
    return left
