"""What a simulated run shows to a scheduling policy: the snapshot that the engine would take of it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lab.sim.flow import Flow
from lab.sim.operators import SimOperator, Window
from penstock.scheduling.policy import Floats, Snapshot

PERIOD_NS = 50_000_000  # how often to look; everything here smooths as the engine does

_COST_NS = 0.25e9  # time constants
_SELECTIVITY_NS = 1e9  # and at least a window's length
_LATENCY_NS = 0.5e9
_BUSY_NS = 0.25e9
_LEAST_COST_NS = 0.01
_LEAST_SELECTIVITY = 1e-6


class Observer:
    """Smooths cost, selectivity and latency. Between two looks snapshots hold the very same arrays."""

    def __init__(self, flow: Flow, turn_limit: int, epoch_ns: int, workers: int) -> None:
        operators, ends = flow.graph.operators, flow.graph.ends()
        size = len(operators)
        self._flow = flow
        self._turn_limit = turn_limit
        self._epoch_ns = epoch_ns
        self._workers = workers
        self._busy = float(workers)  # until it is known
        self._looked_ns = 0
        self._ends = ends
        self._is_end = np.zeros(size, bool)
        self._is_end[list(ends)] = True
        self._memory_ns = np.array([max(_SELECTIVITY_NS, _window_ns(operator)) for operator in operators])
        self._before = np.zeros((3, size))  # events in, events out, time in turns
        self._cost_sums = np.zeros((2, size))  # recent events, and their time
        self._event_sums = np.zeros((2, size))  # recent events in and out
        self._samples_seen = dict.fromkeys(ends, 0)
        self._latency_ns = np.full(size, np.nan)
        self._gradient = np.full(size, np.nan)
        # Until it is measured, an operator costs what its model says of a full turn.
        self._cost_ns = np.array(
            [max(operator.cost.mean_ns(turn_limit) / turn_limit, _LEAST_COST_NS) for operator in operators]
        )
        self._selectivity = np.ones(size)
        self.last_turn_ns = [0] * size

    def snapshot(self, now_ns: int) -> Snapshot:
        """Everything a policy may know, now."""
        if now_ns - self._looked_ns >= PERIOD_NS:
            self._look(now_ns)
        flow = self._flow
        pending = np.array(flow.pending, np.int64)
        if flow.capacity is not None:
            for operator in np.flatnonzero(pending).tolist():
                if flow.is_blocked(operator):
                    pending[operator] = 0
        since = [queue[0][0] if queue else 0 for queue in flow.queues]
        return Snapshot(
            now_ns=now_ns,
            topology=flow.graph.topology,
            pending=pending,
            waiting_since_ns=np.array(since, np.int64),
            last_turn_ns=np.array(self.last_turn_ns, np.int64),
            cost_ns=self._cost_ns,
            selectivity=self._selectivity,
            latency_ns=self._latency_ns,
            latency_gradient=self._gradient,
            turn_limit=self._turn_limit,
            epoch_ns=self._epoch_ns,
            utilisation=min(1.0, self._busy / self._workers),
        )

    def _look(self, now_ns: int) -> None:
        recorder, elapsed_ns = self._flow.recorder, now_ns - self._looked_ns
        totals = np.array([recorder.processed, recorder.emitted, recorder.busy_ns], np.float64)
        taken, emitted, busy_ns = totals - self._before
        self._before, self._looked_ns = totals, now_ns
        self._cost_sums = self._cost_sums * math.exp(-elapsed_ns / _COST_NS) + (taken, busy_ns)
        self._event_sums = self._event_sums * np.exp(-elapsed_ns / self._memory_ns) + (taken, emitted)
        events, time_ns = self._cost_sums
        self._cost_ns = np.maximum(_over(time_ns, events, self._cost_ns), _LEAST_COST_NS)
        events, out = self._event_sums
        share = np.maximum(_over(out, events, self._selectivity), _LEAST_SELECTIVITY)
        self._selectivity = np.where(self._is_end, 1.0, share)
        kept = math.exp(-elapsed_ns / _BUSY_NS)
        self._busy = kept * self._busy + (1.0 - kept) * float(busy_ns.sum()) / elapsed_ns
        self._look_at_latency(elapsed_ns)

    def _look_at_latency(self, elapsed_ns: int) -> None:
        """The gradient is the change of the smoothed latency per second, relative to it."""
        kept = math.exp(-elapsed_ns / _LATENCY_NS)
        latency_ns, gradient = self._latency_ns.copy(), self._gradient * kept
        for end in self._ends:
            new = self._flow.recorder.new_samples(end, self._samples_seen[end])
            if not new:
                continue
            self._samples_seen[end] += len(new)
            mean_ns = sum(new) / len(new)
            before_ns = mean_ns if math.isnan(latency_ns[end]) else float(latency_ns[end])
            smooth_ns = kept * before_ns + (1 - kept) * mean_ns
            latency_ns[end] = smooth_ns
            gradient[end] = (smooth_ns - before_ns) / max(smooth_ns, 1.0) / (elapsed_ns / 1e9)
        self._latency_ns, self._gradient = latency_ns, gradient


def _over(dividend: Floats, divisor: Floats, otherwise: Floats) -> Floats:
    quotient: NDArray[np.float64] = np.divide(dividend, divisor, out=otherwise.copy(), where=divisor > 0.5)
    return quotient


def _window_ns(operator: SimOperator) -> float:
    return operator.selectivity.period_ns if isinstance(operator.selectivity, Window) else 0.0
