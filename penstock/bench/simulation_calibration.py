"""The mix of queries as the simulator needs it: what its operators, turns and decisions cost on this machine.

Measured with one worker: with two, the time inside turns would contain the waiting for the interpreter lock,
which the simulator adds itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from penstock.bench.rates import Lengths
from penstock.bench.report import progress
from penstock.bench.scheduling_systems import Workload, paced, unpaced
from penstock.engine.node import Node
from penstock.metrics.run import RunMetrics
from penstock.sim.calibration import (
    MachineCosts,
    calibrated_graph,
    measure_machine,
    measured_operators,
    readers_of,
)
from penstock.sim.machine import Machine
from penstock.sim.operators import Ratio, SimGraph, SimOperator
from penstock.sim.prediction import THREADS

#: Turns of different sizes tell what a turn costs from what an event costs: two block sizes as fast as it
#: goes, which fills every turn, and a moderate rate, at which a turn has some hundred events.
BLOCKS = (4_096, Node().block_events)
MODERATE = 1_500_000.0

_SECOND_NS = 1e9


@dataclass(frozen=True)
class Calibrated:
    """What was measured of the queries and of the machine."""

    operators: Mapping[str, SimOperator]
    readers: Mapping[str, tuple[str, ...]]
    shares: Mapping[str, float]  # of the whole rate, by source
    costs: MachineCosts
    decision_ns: float  # a turn's share of what workers spend on deciding

    def graph(self, rate: float) -> SimGraph:
        """The mix with events coming at so many a second, all queries together."""
        rates = {source: share * rate for source, share in self.shares.items()}
        return calibrated_graph(self.operators, self.readers, rates)

    def machine(self, policy: str, cores: int) -> Machine:
        """This machine. Threads have no queue to decide from."""
        machine = self.costs.machine(cores)
        return machine if policy == THREADS else replace(machine, serial_ns=round(self.decision_ns))

    def capacity(self, cores: int) -> float:
        """Events a second that so many cores could do if turns, decisions and waiting cost nothing."""
        graph = self.graph(1.0)
        arriving = [self.shares.get(operator.name, 0.0) for operator in graph.operators]
        spent_ns = 0.0
        for number, operator in enumerate(graph.operators):
            spent_ns += arriving[number] * operator.cost.event.mean_ns
            ratio = operator.selectivity.out_per_in if isinstance(operator.selectivity, Ratio) else 0.0
            for reader in graph.children[number]:
                arriving[reader] += arriving[number] * ratio
        return cores * _SECOND_NS / spent_ns

    def figures(self) -> dict[str, object]:
        """For the report."""
        events = {id_: operator.cost.event.mean_ns for id_, operator in self.operators.items()}
        return {
            "turn_ns": max(operator.cost.turn_ns for operator in self.operators.values()),
            "decision_ns": self.decision_ns,
            "context_switch_ns": self.costs.context_switch_ns,
            "least_turn_ns": self.costs.turn_ns,
            "median_event_ns": median(events.values()),
            "event_ns": events,
        }


def calibrate(workload: Workload, queries: int, lengths: Lengths) -> Calibrated:
    """Runs the queries on one worker, four times, and looks at what the machine costs."""
    runs = []
    for block in BLOCKS:
        progress(f"simulation: calibrating with blocks of {block:,} events")
        # In turn, or the cheapest queries would leave nothing to measure of the others.
        fast = Node(workers=1, block_events=block, scheduling="round_robin")
        runs.append(unpaced(workload, fast, queries, lengths))
        runs.append(paced(workload, Node(workers=1, block_events=block), queries, MODERATE, lengths).metrics)
    graph, rates = workload.graph(queries, MODERATE)
    readers = readers_of(graph, [operator.id for operator in runs[0].operators])
    shares = {source: rate / MODERATE for source, rate in rates.items()}
    return calibrated(runs, readers, shares, measure_machine())


def calibrated(
    runs: Sequence[RunMetrics],
    readers: Mapping[str, tuple[str, ...]],
    shares: Mapping[str, float],
    costs: MachineCosts,
) -> Calibrated:
    """From the metrics of runs with one worker."""
    turns = sum(operator.turns for run in runs for operator in run.operators)
    decision_ns = sum(run.decision_ns for run in runs) / max(1, turns)
    return Calibrated(measured_operators(runs), readers, shares, costs, decision_ns)
