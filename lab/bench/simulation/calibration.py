"""The mix of queries as the simulator needs it: what its operators, turns and decisions cost on this machine.

First guesses come from one worker. What turns and events cost depends on what is left in the caches, so they
are told from runs with both workers, by their typical turns, most of which do not wait for the interpreter
lock: that waiting the simulator adds itself. What deciding costs depends on the policy, and how often a turn
takes the lock is counted where every thread has to wait for it.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from lab.bench.measuring.rates import Lengths
from lab.bench.measuring.report import progress
from lab.bench.scheduling.systems import WORKERS, Workload, paced, systems, unpaced
from lab.sim.calibration import (
    MachineCosts,
    calibrated_graph,
    measure_machine,
    measured_operators,
    readers_of,
)
from lab.sim.distributions import Constant
from lab.sim.machine import Machine
from lab.sim.operators import Ratio, SimGraph, SimOperator
from lab.sim.prediction import THREADS
from lab.sim.turn_costs import Closings, Turns, closings_of, turn_costs
from penstock.engine.node import Node
from penstock.metrics.run import RunMetrics
from penstock.metrics.turns import TurnLog

#: Turns of different sizes tell what a turn costs from what an event costs: two block sizes as fast as it
#: goes, which fills every turn, and a moderate rate, at which a turn has some hundred events.
BLOCKS = (4_096, Node().block_events)
MODERATE = 1_500_000.0
#: Of what two cores could do by those runs: a rate that everyone carries and that fills turns as they are
#: under load; and one that is too much for a thread per operator, so that all of them want the interpreter
#: lock.
LOADED, TOO_MUCH = 0.5, 1.0
#: Runs with both workers of which every turn is looked at, with policies that let sources wait and that do
#: not: large and small turns, of operators that were idle for long and for short.
LOGGED = (("state", LOADED), ("state", 0.1), ("round_robin", 0.1))
#: The deviation of the logarithm of a turn's cost, assumed.
JITTER = 0.2

_SECOND_NS = 1e9


@dataclass(frozen=True)
class Calibrated:
    """What was measured of the queries and of the machine."""

    operators: Mapping[str, SimOperator]  # without the closing of windows
    readers: Mapping[str, tuple[str, ...]]
    shares: Mapping[str, float]  # of the whole rate, by source
    costs: MachineCosts
    decision_ns: Mapping[str, float]  # what a worker spends on deciding once, by policy
    closings: Mapping[str, Closings] = field(default_factory=dict)  # by operator
    lock_uses: int = 1  # of a turn with a thread for every operator

    @property
    def sources(self) -> dict[str, str]:
        """The source that each operator's events come from; of several, one."""
        found = {source: source for source in self.shares}
        waiting = list(found)
        while waiting:
            writer = waiting.pop(0)
            for reader in self.readers.get(writer, ()):
                if reader not in found:
                    found[reader] = found[writer]
                    waiting.append(reader)
        return found

    def graph(self, rate: float) -> SimGraph:
        """The mix with events coming at so many a second, all queries together."""
        rates, sources = {source: share * rate for source, share in self.shares.items()}, self.sources
        windows = {id_: closings.window(rates[sources[id_]]) for id_, closings in self.closings.items()}
        return calibrated_graph(self.operators, self.readers, rates, selectivities=windows)

    def machine(self, policy: str, cores: int) -> Machine:
        """This machine. Threads have no queue to decide from."""
        machine = self.costs.machine(cores)
        if policy == THREADS:
            return replace(machine, lock_uses=self.lock_uses)
        return replace(machine, serial_ns=round(self.decision_ns[policy]))

    def capacity(self, cores: int) -> float:
        """Events a second that so many cores could do if turns, decisions and waiting cost nothing."""
        graph, sources = calibrated_graph(self.operators, self.readers, self.shares), self.sources
        arriving = [self.shares.get(operator.name, 0.0) for operator in graph.operators]
        spent_ns = sum(
            self.shares[sources[id_]] / closings.every * closings.cost_ns
            for id_, closings in self.closings.items()
        )
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
            "cold_turn_ns": max(operator.cost.cold_ns for operator in self.operators.values()),
            "decision_ns": dict(self.decision_ns),
            "context_switch_ns": self.costs.context_switch_ns,
            "least_turn_ns": self.costs.turn_ns,
            "lock_uses_of_threads": self.lock_uses,
            "median_event_ns": median(events.values()),
            "event_ns": events,
            "closing_ns": {id_: closings.cost_ns for id_, closings in self.closings.items()},
            "closing_every": {id_: closings.every for id_, closings in self.closings.items()},
        }


def calibrate(workload: Workload, queries: int, policies: Sequence[str], lengths: Lengths) -> Calibrated:
    """Runs the queries at several rates, on one worker and on both, and looks at what the machine costs."""
    runs = []
    for block in BLOCKS:
        progress(f"simulation: calibrating with blocks of {block:,} events")
        node = Node(workers=1, block_events=block, fusion=False)
        runs.append(unpaced(workload, node, queries, lengths))
        # without its last latencies: what was prepared and could not be read in time is not waited for
        runs.append(paced(workload, node, queries, MODERATE, lengths, drains=False).metrics)
    graph, rates = workload.graph(queries, MODERATE)
    readers = readers_of(graph, [operator.id for operator in runs[0].operators])
    shares = {source: rate / MODERATE for source, rate in rates.items()}
    found = calibrated(runs, readers, shares, measure_machine())
    logs = []
    for policy, share in LOGGED:
        rate = share * found.capacity(WORKERS)
        progress(f"simulation: calibrating turns with {policy} at {rate / 1e6:.1f} M/s")
        node = replace(systems()[policy], turn_log=(log := TurnLog()))
        paced(workload, node, queries, rate, lengths, drains=False)
        logs.append(log.turns)
    found = by_turns(found, logs)
    progress("simulation: calibrating decisions")
    capacity = found.capacity(WORKERS)
    decision_ns = {}
    for policy in policies:
        if policy != THREADS:
            run = paced(workload, systems()[policy], queries, LOADED * capacity, lengths, drains=False)
            decision_ns[policy] = run.metrics.decision_ns / max(1, run.metrics.decisions)
    progress("simulation: calibrating threads")
    uses = lock_uses(workload, systems()[THREADS], queries, TOO_MUCH * capacity, lengths)
    return replace(found, decision_ns=decision_ns, lock_uses=uses)


def calibrated(
    runs: Sequence[RunMetrics],
    readers: Mapping[str, tuple[str, ...]],
    shares: Mapping[str, float],
    costs: MachineCosts,
) -> Calibrated:
    """From the metrics of runs with one worker: as if windows sent evenly, and deciding cost nothing."""
    return Calibrated(measured_operators(runs), readers, shares, costs, {})


def by_turns(found: Calibrated, logs: Sequence[Turns]) -> Calibrated:
    """With what the turns of several runs tell: what turns and events cost, and, by the first run, what the
    closing of a window does. Operators that had too few turns keep what an event cost them."""
    costs, sources = turn_costs(logs), found.sources
    operators = {}
    for id_, operator in found.operators.items():
        event = Constant(event_ns) if (event_ns := costs.event_ns.get(id_)) else operator.cost.event
        cost = replace(
            operator.cost, event=event, turn_ns=costs.turn_ns, cold_ns=costs.cold_ns, jitter=JITTER
        )
        operators[id_] = replace(operator, cost=cost)
    closings = {
        id_: seen
        for id_, source in sources.items()
        if id_ != source and (seen := closings_of(logs[0][id_], logs[0][source])) is not None
    }
    return replace(found, operators=operators, closings=closings)


def lock_uses(workload: Workload, node: Node, queries: int, rate: float, lengths: Lengths) -> int:
    """How often a turn has to wait for the interpreter lock when everyone wants it: a thread that waits gives
    up its core, which the system counts."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    run = paced(workload, node, queries, rate, replace(lengths, warm_up_s=0.0), drains=False)
    given_up = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before
    return max(1, round(given_up / _turns(run.metrics)))


def _turns(run: RunMetrics) -> int:
    return max(1, sum(operator.turns for operator in run.operators))
