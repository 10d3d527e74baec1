"""What is observed of the operators while they run: cost, selectivity, and how the queries' latency moves."""

from __future__ import annotations

import math

import numpy as np

from penstock.engine.vertex import Vertex
from penstock.query.windows import Window
from penstock.scheduling.policy import Floats
from penstock.scheduling.topology import Topology

#: How often to look (enjima 4), at up to a hundred operators; more of them are looked at less often. Between
#: two looks nothing changes, so policies need not compute anew.
PERIOD_NS = 50_000_000
_FIRST_PERIOD_NS = 4_000_000  # and more often to begin with: turns are short until costs are known

_COST_NS = 0.25e9  # time constants of the smoothing
_SELECTIVITY_NS = 1e9  # and at least a window's length
_LATENCY_NS = 0.5e9
_BUSY_NS = 0.25e9
_UNKNOWN_COST_NS = 100.0
_LEAST_COST_NS = 0.01
_LEAST_SELECTIVITY = 1e-6  # a window emits nothing most of the time; nothing may divide by zero


class Observation:
    """Smoothed figures of all operators. ``update`` replaces the arrays, it never changes them in place."""

    def __init__(self, vertices: list[Vertex]) -> None:
        count = len(vertices)
        self._counters = [vertex.counters for vertex in vertices]
        outlets = [vertex.operator.out for vertex in vertices]
        self._outlets = [outlet for outlet in outlets if outlet is not None]
        self._writing = np.array([outlet is not None for outlet in outlets], bool)
        self._histograms = [vertex.latency for vertex in vertices if vertex.latency is not None]
        self._timed = np.array([vertex.latency is not None for vertex in vertices], bool)
        self._is_end = np.array([not vertex.outlets for vertex in vertices], bool)
        self._is_source = np.array([vertex.source is not None for vertex in vertices], bool)
        self._memory_ns = np.array([max(_SELECTIVITY_NS, window_ns(vertex)) for vertex in vertices])
        self._longest_ns = PERIOD_NS * max(1, count // 100)
        self._period_ns = _FIRST_PERIOD_NS
        self._updated_ns = 0
        self._observed_ns = 0
        self._counts = np.zeros((6, count))  # processed, emitted, busy, markers, their latency, turns
        self._events_in, self._events_out = np.zeros(count), np.zeros(count)
        self._cost_events, self._cost_busy_ns = np.zeros(count), np.zeros(count)
        self._arrived = np.zeros(count)
        self.cost_ns: Floats = np.full(count, _UNKNOWN_COST_NS)
        self.selectivity: Floats = np.ones(count)
        self.latency_ns: Floats = np.full(count, np.nan)
        self.latency_gradient: Floats = np.full(count, np.nan)
        self.rate_per_ns: Floats = np.zeros(count)  # of sources: events read
        self.busy = 0.0  # how many workers were in turns, on average

    def is_due(self, now_ns: int) -> bool:
        return now_ns - self._updated_ns >= self._period_ns

    def update(self, now_ns: int) -> None:
        """Looks at every operator's counters."""
        elapsed_ns = now_ns - self._updated_ns if self._updated_ns else self._period_ns
        counts = self._count()
        processed, emitted, busy_ns, markers, latency_ns, turns = counts - self._counts
        self._counts, self._updated_ns = counts, now_ns
        self._period_ns = min(2 * self._period_ns, self._longest_ns)
        self._update_cost(np.maximum(processed, turns), busy_ns, math.exp(-elapsed_ns / _COST_NS))
        self._update_selectivity(processed, emitted, np.exp(-elapsed_ns / self._memory_ns))
        self._update_latency(markers, latency_ns, elapsed_ns)
        self.rate_per_ns = np.where(self._is_source, processed / elapsed_ns, 0.0)
        self._observed_ns += elapsed_ns
        # At first the mean since the beginning, so that what was taken for granted is soon forgotten.
        kept = 1.0 - elapsed_ns / min(self._observed_ns, _BUSY_NS + elapsed_ns)
        self.busy = kept * self.busy + (1.0 - kept) * float(busy_ns.sum()) / elapsed_ns

    def _count(self) -> Floats:
        counts = np.zeros_like(self._counts)
        counts[0] = [counters.processed for counters in self._counters]
        counts[1, self._writing] = [outlet.written for outlet in self._outlets]
        counts[2] = [counters.busy_ns for counters in self._counters]
        counts[3, self._timed] = [histogram.recorded for histogram in self._histograms]
        counts[4, self._timed] = [histogram.total_ns for histogram in self._histograms]
        counts[5] = [counters.turns for counters in self._counters]
        return counts

    def _update_cost(self, taken: Floats, busy_ns: Floats, kept: float) -> None:
        """Time per event; of a turn with marks alone, per turn.

        Where large turns were seen, the least of them counts. The time inside a turn includes what others
        made it wait for, and that must not make turns shorter, which would make it wait more often.
        """
        self._cost_events = kept * self._cost_events + taken
        self._cost_busy_ns = kept * self._cost_busy_ns + busy_ns
        known = self._cost_events > 0.5
        cost_ns = np.divide(self._cost_busy_ns, self._cost_events, out=self.cost_ns.copy(), where=known)
        least_ns = np.array([counters.least_cost_ns for counters in self._counters])
        self.cost_ns = np.maximum(np.where(least_ns > 0.0, least_ns, cost_ns), _LEAST_COST_NS)

    def _update_selectivity(self, processed: Floats, emitted: Floats, kept: Floats) -> None:
        self._events_in = kept * self._events_in + processed
        self._events_out = kept * self._events_out + emitted
        known = (self._events_in > 0.5) & ~self._is_end & ~self._is_source
        share = np.divide(self._events_out, self._events_in, out=self.selectivity.copy(), where=known)
        self.selectivity = np.maximum(share, _LEAST_SELECTIVITY)

    def _update_latency(self, markers: Floats, latency_ns: Floats, elapsed_ns: int) -> None:
        """Smooths the latency of each sink that saw a marker; the gradient is per second, relative to it."""
        seen = markers > 0
        mean_ns = np.divide(latency_ns, markers, out=np.full(len(markers), np.nan), where=seen)
        kept = math.exp(-elapsed_ns / _LATENCY_NS)
        before_ns = np.where(np.isnan(self.latency_ns), mean_ns, self.latency_ns)
        smooth_ns = np.where(seen, kept * before_ns + (1.0 - kept) * mean_ns, self.latency_ns)
        change = (smooth_ns - before_ns) / np.maximum(smooth_ns, 1.0) / (elapsed_ns / 1e9)
        self.latency_gradient = np.where(seen, change, kept * self.latency_gradient)
        self.latency_ns = smooth_ns


def window_ns(vertex: Vertex) -> float:
    """The length of an operator's windows; 0 if it has none."""
    window = getattr(vertex.operator.node.spec, "window", None)
    return window.length_us * 1e3 if isinstance(window, Window) else 0.0


def topology_of(vertices: list[Vertex]) -> Topology:
    """The graph of the vertices as policies see it."""
    readers: dict[int, list[int]] = {}
    for number, vertex in enumerate(vertices):
        for edge in vertex.edges:
            readers.setdefault(id(edge.outlet), []).append(number)
    children = tuple(
        tuple(dict.fromkeys(reader for outlet in vertex.outlets for reader in readers.get(id(outlet), ())))
        for vertex in vertices
    )
    return Topology(children, tuple(vertex.operator.node.kind for vertex in vertices))
