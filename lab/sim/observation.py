"""What a simulated run shows to a scheduling policy: what the engine counts, and observed as it does."""

from __future__ import annotations

import numpy as np

from lab.sim.flow import Flow
from lab.sim.operators import SimOperator, SimulatedWindow
from penstock.metrics.operators import OperatorCounters
from penstock.scheduling.observation import Counts, Observation


class SimCounts:
    """The counters of all operators. ``turn`` is told of each."""

    def __init__(self, flow: Flow) -> None:
        size = len(flow.graph.operators)
        self._flow = flow
        self._counters = [OperatorCounters() for _ in range(size)]
        self._markers, self._latency_ns = np.zeros(size), np.zeros(size)
        self._samples_seen = dict.fromkeys(flow.graph.ends(), 0)

    def turn(self, operator: int, taken: int, cost_ns: int) -> None:
        """A turn of this operator took so long for so many events."""
        self._counters[operator].record_turn(0, cost_ns, taken)

    def read(self) -> Counts:
        """All of them, now."""
        recorder, counters = self._flow.recorder, self._counters
        for end, seen in self._samples_seen.items():
            new = recorder.new_samples(end, seen)
            self._samples_seen[end] += len(new)
            self._markers[end] += len(new)
            self._latency_ns[end] += sum(new)
        return Counts(
            taken=np.array([count.processed for count in counters], float),
            emitted=np.array(recorder.emitted, float),
            busy_ns=np.array([count.busy_ns for count in counters], float),
            turns=np.array([count.turns for count in counters], float),
            markers=self._markers.copy(),
            latency_ns=self._latency_ns.copy(),
            least_cost_ns=np.array([count.least_cost_ns for count in counters]),
        )


def observation_of(flow: Flow, workers: int) -> Observation:
    """Nothing is observed so far. What ends send says nothing of their selectivity."""
    graph = flow.graph
    windows_ns = np.array([_window_ns(operator) for operator in graph.operators])
    counted = np.array([bool(children) for children in graph.children])
    return Observation(graph.topology, workers, windows_ns, counted)


def _window_ns(operator: SimOperator) -> float:
    return operator.selectivity.period_ns if isinstance(operator.selectivity, SimulatedWindow) else 0.0
