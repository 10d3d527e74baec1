"""Policies at several rates, simulated and run, and how far the two put them in the same order."""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from penstock.bench.rates import Lengths, Paced, farthest_behind_s
from penstock.bench.report import median, progress
from penstock.bench.scheduling_systems import LIMIT_MS, THREADS, WORKERS, Workload, paced, systems
from penstock.bench.simulation_calibration import Calibrated
from penstock.engine.node import Node
from penstock.sim.machine import Machine
from penstock.sim.operators import SimGraph
from penstock.sim.prediction import Prediction, ordered_pairs, simulate
from penstock.sim.scheduled import Run

POLICIES = (
    "state",
    "round_robin",
    "min_cost",
    "first_come",
    "congestion",
    "min_latency",
    "highest_rate",
    THREADS,
)

#: The 99th percentile in ms, by policy and rate; measured, one for every round.
Predicted = Mapping[str, Mapping[float, float]]
Measured = Mapping[str, Mapping[float, Sequence[float]]]

_ALONE_BELOW_NS = 50_000  # as in the engine's hand-overs
_MARK_EVERY_NS = 5_000_000
_DRAIN_S = 0.3

Job = TypeVar("Job")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Simulation:
    """One simulated run, of which the 99th percentile of the latency is wanted."""

    graph: SimGraph
    policy: str
    machine: Machine
    run: Run
    since_s: float

    def p99_ms(self) -> float:
        result = simulate(self.graph, self.policy, self.machine, WORKERS, self.run)
        return result.quantile_ms(0.99, self.since_s)


def run_like(node: Node, lengths: Lengths) -> Run:
    """How the engine's runs are simulated."""
    return Run(
        lengths.warm_up_s + lengths.measured_s,
        drain_s=_DRAIN_S,
        mark_every_ns=_MARK_EVERY_NS,
        turn_limit=node.turn_limit,
        adaptation=node.adaptation,
        epoch_ns=node.epoch_us * 1_000,
        capacity=node.max_chunks * node.chunk_blocks * node.block_events,
        reads_by_epoch=True,
        alone_below_ns=_ALONE_BELOW_NS,
        passes=True,
    )


def predict(
    found: Calibrated, policies: Sequence[str], rates: Sequence[float], lengths: Lengths, processes: int = 0
) -> dict[str, dict[float, float]]:
    """Simulates every policy at every rate."""
    run, keys = run_like(Node(), lengths), [(policy, rate) for rate in rates for policy in policies]
    jobs = [
        Simulation(found.graph(rate), policy, found.machine(policy, WORKERS), run, lengths.warm_up_s)
        for policy, rate in keys
    ]
    p99_ms = dict(zip(keys, in_processes(Simulation.p99_ms, jobs, processes), strict=True))
    return {policy: {rate: p99_ms[policy, rate] for rate in rates} for policy in policies}


def measure(
    workload: Workload,
    queries: int,
    policies: Sequence[str],
    rates: Sequence[float],
    lengths: Lengths,
    rounds: int,
) -> dict[str, dict[float, list[float]]]:
    """Runs every policy at every rate, round after round, every other round from the last to the first."""
    nodes = systems()
    found: dict[str, dict[float, list[float]]] = {policy: {rate: [] for rate in rates} for policy in policies}
    for number in range(rounds):
        progress(f"simulation: measuring, round {number + 1} of {rounds}")
        for rate in rates:
            by_source = workload.graph(queries, rate)[1]
            for policy in policies[:: 1 if number % 2 == 0 else -1]:
                run = paced(workload, nodes[policy], queries, rate, lengths)
                found[policy][rate].append(latency_ms(run, by_source))
    return found


def latency_ms(run: Paced, rates: Mapping[str, float]) -> float:
    """The 99th percentile, or how far a source is behind where that is longer: one that is not read sends no
    markers, while the simulator counts what has not arrived with its age."""
    if run.kept:
        return run.p99_ms
    behind_ms = 1e3 * farthest_behind_s(run.metrics, rates)
    return behind_ms if math.isnan(run.p99_ms) else max(run.p99_ms, behind_ms)


def medians(measured: Measured) -> dict[str, dict[float, float]]:
    """The median of the rounds."""
    return {
        policy: {rate: median(rounds) for rate, rounds in by_rate.items()}
        for policy, by_rate in measured.items()
    }


def highest_rates(p99_ms: Predicted, limit_ms: float = LIMIT_MS) -> dict[str, float]:
    """The rate at which each policy's latency reaches the limit, by the rates before and after it.

    Between two rates the logarithm of the latency is taken to grow with that of the rate. 0 if it is beyond
    the limit at the lowest rate, the highest rate if it never is.
    """
    return {policy: _crossing(by_rate, limit_ms) for policy, by_rate in p99_ms.items()}


def _crossing(by_rate: Mapping[float, float], limit_ms: float) -> float:
    below: tuple[float, float] | None = None
    for rate, p99_ms in sorted(by_rate.items()):
        if p99_ms > limit_ms:
            if below is None:
                return 0.0
            share = math.log(limit_ms / below[1]) / math.log(p99_ms / below[1])
            return below[0] * math.pow(rate / below[0], share)
        below = rate, p99_ms
    return below[0] if below else 0.0


@dataclass(frozen=True)
class Order:
    """How many pairs of policies have an order in both, and which of them are the other way round."""

    pairs: int
    reversed_pairs: tuple[tuple[str, str], ...]

    @property
    def agreement(self) -> float:
        """As ``penstock.sim.prediction.agreement``, but NaN with no pair: nothing was compared."""
        return 1.0 - len(self.reversed_pairs) / self.pairs if self.pairs else math.nan


def order_of(predicted: Mapping[str, float], measured: Mapping[str, float]) -> Order:
    """Compares one figure of every policy."""
    same = ordered_pairs([Prediction(*item) for item in predicted.items()], dict(measured))
    return Order(len(same), tuple(pair for pair, is_same in same.items() if not is_same))


def orders_by_rate(predicted: Predicted, measured: Measured) -> dict[float, Order]:
    """Compares the latencies at each rate, by the medians of the rounds."""
    middle = medians(measured)
    rates = next(iter(predicted.values())).keys()
    return {rate: order_of(_at(predicted, rate), _at(middle, rate)) for rate in rates}


def clear_order(predicted: Predicted, measured: Measured) -> Order:
    """Over all rates, only the pairs that every round put in the same order: others are noise."""
    middle, pairs, wrong = medians(measured), 0, []
    for rate in next(iter(predicted.values())):
        predictions = [Prediction(policy, by_rate[rate]) for policy, by_rate in predicted.items()]
        for (one, other), is_same in ordered_pairs(predictions, _at(middle, rate)).items():
            rounds = zip(measured[one][rate], measured[other][rate], strict=True)
            if len({a < b for a, b in rounds}) == 1:
                pairs += 1
                wrong += [] if is_same else [(one, other)]
    return Order(pairs, tuple(wrong))


def together(orders: Iterable[Order]) -> Order:
    """All pairs of several comparisons."""
    several = list(orders)
    return Order(
        sum(order.pairs for order in several),
        tuple(pair for order in several for pair in order.reversed_pairs),
    )


def in_processes(function: Callable[[Job], Found], jobs: Sequence[Job], processes: int = 0) -> list[Found]:
    """The function of every job, on so many processes; 0: one for every core."""
    processes = processes or os.cpu_count() or 1
    if processes == 1:
        return [function(job) for job in jobs]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as executor:
        return list(executor.map(function, jobs))


def _at(figures: Predicted, rate: float) -> dict[str, float]:
    return {policy: by_rate[rate] for policy, by_rate in figures.items()}
