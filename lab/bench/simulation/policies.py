"""Policies at several rates, simulated and run, and how far the two put them in the same order."""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lab.bench.measuring.rates import Lengths, Paced, farthest_behind_s
from lab.bench.measuring.report import median, progress
from lab.bench.scheduling.systems import LIMIT_MS, THREADS, WORKERS, Workload, paced, systems
from lab.bench.simulation.calibration import Calibrated
from lab.sim.machine import Machine
from lab.sim.operators import SimGraph
from lab.sim.prediction import Prediction, ordered_pairs, simulate
from lab.sim.scheduled import Run
from penstock.engine.node import Node

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

#: Markers of a source, measured and simulated. At the engine's 50 ms a run would look at latency at a dozen
#: moments, and their 99th percentile would be the worst of them.
MARK_EVERY_MS = 5
_PLAN_NS = 100_000  # what the engine's plans of fifty operators take
_DRAIN_S = 0.3
SEEDS = 3

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
        mark_every_ns=MARK_EVERY_MS * 1_000_000,
        turn_limit=node.turn_limit,
        adaptation=node.adaptation,
        epoch_ns=node.epoch_us * 1_000,
        plan_ns=_PLAN_NS,
        capacity=node.max_chunks * node.chunk_blocks * node.block_events,
        reads_by_epoch=True,
        rules=node.rules,
    )


def predict(
    found: Calibrated, policies: Sequence[str], rates: Sequence[float], lengths: Lengths, processes: int = 0
) -> dict[str, dict[float, float]]:
    """Simulates every policy at every rate, with several seeds, of which the median counts."""
    run, keys = run_like(Node(), lengths), [(policy, rate) for rate in rates for policy in policies]
    jobs = [
        Simulation(
            found.graph(rate),
            policy,
            found.machine(policy, WORKERS),
            replace(run, seed=seed),
            lengths.warm_up_s,
        )
        for policy, rate in keys
        for seed in range(SEEDS)
    ]
    p99_ms = in_processes(Simulation.p99_ms, jobs, processes)
    middle = {key: median(p99_ms[place * SEEDS :][:SEEDS]) for place, key in enumerate(keys)}
    return {policy: {rate: middle[policy, rate] for rate in rates} for policy in policies}


def measure(
    workload: Workload,
    queries: int,
    policies: Sequence[str],
    rates: Sequence[float],
    lengths: Lengths,
    rounds: int,
) -> dict[str, dict[float, list[float]]]:
    """Runs every policy at every rate, round after round, every other round from the last to the first."""
    changes: dict[str, Any] = {"marker_every_ms": MARK_EVERY_MS, "fusion": False}  # as it is simulated
    nodes = {name: replace(node, **changes) for name, node in systems().items()}
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
class OrderAgreement:
    """How many pairs of policies have an order in both, and which of them are the other way round."""

    pairs: int
    reversed_pairs: tuple[tuple[str, str], ...]

    @property
    def agreement(self) -> float:
        """As ``lab.sim.prediction.agreement``, but NaN with no pair: nothing was compared."""
        return 1.0 - len(self.reversed_pairs) / self.pairs if self.pairs else math.nan


def order_of(predicted: Mapping[str, float], measured: Mapping[str, float]) -> OrderAgreement:
    """Compares one figure of every policy."""
    return clear_order_of(predicted, {policy: [figure] for policy, figure in measured.items()})


def clear_order_of(predicted: Mapping[str, float], measured: Mapping[str, Sequence[float]]) -> OrderAgreement:
    """Compares one figure of every policy with those of several rounds: only the pairs of which every round
    of one was below every round of the other. The rest may be noise."""
    middle = {policy: median(rounds) for policy, rounds in measured.items()}
    pairs, wrong = 0, []
    for pair, is_same in ordered_pairs([Prediction(*item) for item in predicted.items()], middle).items():
        one, other = (measured[policy] for policy in pair)
        if max(one) < min(other) or max(other) < min(one):
            pairs += 1
            wrong += [] if is_same else [pair]
    return OrderAgreement(pairs, tuple(wrong))


def orders_by_rate(predicted: Predicted, measured: Measured) -> dict[float, OrderAgreement]:
    """Compares the latencies at each rate, by the medians of the rounds."""
    middle = medians(measured)
    return {rate: order_of(_at(predicted, rate), _at(middle, rate)) for rate in _rates(predicted)}


def clear_order(predicted: Predicted, measured: Measured) -> OrderAgreement:
    """Compares the latencies at all rates, where the rounds leave no doubt."""
    return together(
        clear_order_of(_at(predicted, rate), {policy: by_rate[rate] for policy, by_rate in measured.items()})
        for rate in _rates(predicted)
    )


def highest_of_rounds(measured: Measured, limit_ms: float = LIMIT_MS) -> dict[str, list[float]]:
    """As ``highest_rates``, of every round by itself."""
    found = {}
    for policy, by_rate in measured.items():
        rounds = zip(*by_rate.values(), strict=True)
        found[policy] = [_crossing(dict(zip(by_rate, p99_ms, strict=True)), limit_ms) for p99_ms in rounds]
    return found


def together(orders: Iterable[OrderAgreement]) -> OrderAgreement:
    """All pairs of several comparisons."""
    several = list(orders)
    return OrderAgreement(
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


def _rates(predicted: Predicted) -> Iterable[float]:
    return next(iter(predicted.values()))


def _at(figures: Predicted, rate: float) -> dict[str, float]:
    return {policy: by_rate[rate] for policy, by_rate in figures.items()}
