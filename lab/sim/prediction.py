"""Which policy will be best: a graph simulated under each, by the rate it sustains or by its latency."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lab.sim.machine import Machine
from lab.sim.operators import SimGraph
from lab.sim.results import SimResult
from lab.sim.scheduled import Run, simulate_scheduled
from lab.sim.threads import simulate_threads
from penstock.scheduling.catalogue import policy_named
from penstock.scheduling.policy import Policy

#: The name of the baseline with one thread per operator, where policies are named.
THREADS = "threads"

_SMALLEST = 2.0**-10


@dataclass(frozen=True)
class Prediction:
    """One policy's figure: a rate factor that it sustains, or a latency in ms."""

    policy: str
    figure: float


def simulate(graph: SimGraph, policy: str | Policy, machine: Machine, workers: int, run: Run) -> SimResult:
    """A run under a policy, by name or given; ``"threads"`` is one thread per operator."""
    if policy == THREADS:
        return simulate_threads(graph, machine, run)
    return simulate_scheduled(graph, policy_named(policy, run.adaptation), machine, workers, run)


def order_by_latency(
    graph: SimGraph, policies: Iterable[str], machine: Machine, workers: int, run: Run, *, q: float = 0.99
) -> list[Prediction]:
    """The policies by a quantile of the latency at the graph's own rate, best first."""
    found = [
        Prediction(policy, simulate(graph, policy, machine, workers, run).quantile_ms(q))
        for policy in policies
    ]
    return sorted(found, key=lambda prediction: prediction.figure)


def order_by_rate(
    graph: SimGraph,
    policies: Iterable[str],
    machine: Machine,
    workers: int,
    run: Run,
    *,
    limit_ms: float = 100.0,
    q: float = 0.99,
    largest: float = 16.0,
    accuracy: float = 0.02,
) -> list[Prediction]:
    """The policies by the highest rate at which the quantile keeps within the limit, best first.

    Rates are given as factors of the graph's own.
    """

    def keeps(policy: str) -> Callable[[float], bool]:
        def at(factor: float) -> bool:
            result = simulate(graph.at_rate(factor), policy, machine, workers, run)
            return result.quantile_ms(q) <= limit_ms

        return at

    found = [Prediction(policy, highest(keeps(policy), largest, accuracy)) for policy in policies]
    return sorted(found, key=lambda prediction: -prediction.figure)


def highest(
    holds: Callable[[float], bool], largest: float, accuracy: float = 0.02, growth: float = 2.0
) -> float:
    """The highest value up to ``largest`` for which it holds, to a relative accuracy; 0 if it holds for none.

    Goes from 1 up or down by ``growth`` to find where it changes, then halves the interval.

    >>> highest(lambda load: load <= 3.0, largest=16.0, accuracy=0.001)
    3.0
    """
    low = 1.0
    if holds(low):
        while low < largest and holds(min(low * growth, largest)):
            low = min(low * growth, largest)
        if low >= largest:
            return largest
        high = min(low * growth, largest)
    else:
        while not holds(low / growth):
            low /= growth
            if low < _SMALLEST:
                return 0.0
        low, high = low / growth, low
    while high - low > accuracy * low:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def agreement(predicted: Iterable[Prediction], measured: dict[str, float], tolerance: float = 0.05) -> float:
    """The share of pairs of policies that prediction and measurement put in the same order.

    ``measured``: the same figure by policy. With no pair that has an order in both the share is 1.
    """
    pairs = ordered_pairs(predicted, measured, tolerance)
    return sum(pairs.values()) / len(pairs) if pairs else 1.0


def ordered_pairs(
    predicted: Iterable[Prediction], measured: dict[str, float], tolerance: float = 0.05
) -> dict[tuple[str, str], bool]:
    """The pairs of policies that have an order in both, and whether it is the same.

    Pairs that differ by less than ``tolerance`` in the measurement or in the prediction have no order, and
    are left out.
    """
    figures = [(prediction.policy, prediction.figure) for prediction in predicted]
    pairs: dict[tuple[str, str], bool] = {}
    for index, (one, first) in enumerate(figures):
        for other, second in figures[index + 1 :]:
            if one not in measured or other not in measured:
                continue
            if _close(first, second, tolerance) or _close(measured[one], measured[other], tolerance):
                continue
            pairs[one, other] = (first < second) == (measured[one] < measured[other])
    return pairs


def _close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(abs(a), abs(b))
