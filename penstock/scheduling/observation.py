"""What is observed of operators while they run: cost, selectivity, and how the queries' latency moves."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

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


class Counts(NamedTuple):
    """What operators have counted since the run began, by number."""

    taken: Floats  # events
    emitted: Floats
    busy_ns: Floats  # time in turns
    turns: Floats
    markers: Floats  # latency markers that sinks have seen,
    latency_ns: Floats  # and how old those were, summed
    least_cost_ns: Floats  # per event in large turns, not since the run began; 0: none yet


class Observation:
    """Smoothed figures of all operators. ``update`` replaces the arrays, it never changes them in place.

    ``windows_ns``: how long each operator's windows are. ``counted``: whose events out are counted.
    ``by_least``: what an operator costs is the least that large turns have shown, where there were any, and
    not the mean. The time inside a turn includes what others made it wait for, and that makes turns shorter,
    so that they wait more often.
    """

    def __init__(
        self, topology: Topology, workers: int, windows_ns: Floats, counted: Floats, *, by_least: bool = True
    ) -> None:
        count = len(topology)
        self._workers, self._by_least = workers, by_least
        self._is_source = np.array([kind == "source" for kind in topology.kinds], bool)
        self._counted = counted.astype(bool)
        self._memory_ns = np.maximum(_SELECTIVITY_NS, windows_ns)
        self._longest_ns = PERIOD_NS * max(1, count // 100)
        self._period_ns = _FIRST_PERIOD_NS
        self._updated_ns = 0
        self._observed_ns = 0
        self._counts = Counts(*np.zeros((len(Counts._fields), count)))
        self._events_in, self._events_out = np.zeros(count), np.zeros(count)
        self._cost_events, self._cost_busy_ns = np.zeros(count), np.zeros(count)
        self._marked_ns = np.zeros(count)  # when a marker was last seen
        self._busy = float(workers)  # until it is known
        self.cost_ns: Floats = np.full(count, _UNKNOWN_COST_NS)
        self.known_cost_ns: Floats = np.zeros(count)  # the least, where large turns were seen; else 0
        self.selectivity: Floats = np.ones(count)
        self.latency_ns: Floats = np.full(count, np.nan)
        self.latency_gradient: Floats = np.full(count, np.nan)
        self.arriving_per_ns: Floats = np.zeros(count)  # events taken
        self.rate_per_ns: Floats = np.zeros(count)  # the same of sources, as it was at the last look

    @property
    def utilisation(self) -> float:
        """The share of the workers' time that was spent in turns of late."""
        return min(1.0, self._busy / self._workers)

    def is_due(self, now_ns: int) -> bool:
        return now_ns - self._updated_ns >= self._period_ns

    def update(self, now_ns: int, counts: Counts) -> None:
        """Looks at what every operator has counted by now."""
        elapsed_ns = now_ns - self._updated_ns if self._updated_ns else self._period_ns
        new = Counts(*(now - before for now, before in zip(counts, self._counts, strict=True)))
        self._counts, self._updated_ns = counts, now_ns
        self._period_ns = min(2 * self._period_ns, self._longest_ns)
        self.known_cost_ns = counts.least_cost_ns
        self._update_cost(new, math.exp(-elapsed_ns / _COST_NS))
        self._update_selectivity(new, np.exp(-elapsed_ns / self._memory_ns))
        self._update_latency(new, elapsed_ns, now_ns)
        kept = math.exp(-elapsed_ns / _COST_NS)
        self.arriving_per_ns = kept * self.arriving_per_ns + (1.0 - kept) * new.taken / elapsed_ns
        self.rate_per_ns = np.where(self._is_source, new.taken / elapsed_ns, 0.0)
        self._observed_ns += elapsed_ns
        # At first the mean since the beginning, so that what was taken for granted is soon forgotten.
        kept = 1.0 - elapsed_ns / min(self._observed_ns, _BUSY_NS + elapsed_ns)
        self._busy = kept * self._busy + (1.0 - kept) * float(new.busy_ns.sum()) / elapsed_ns

    def _update_cost(self, new: Counts, kept: float) -> None:
        """Time per event; of a turn with marks alone, per turn."""
        self._cost_events = kept * self._cost_events + np.maximum(new.taken, new.turns)
        self._cost_busy_ns = kept * self._cost_busy_ns + new.busy_ns
        known = self._cost_events > 0.5
        cost_ns = np.divide(self._cost_busy_ns, self._cost_events, out=self.cost_ns.copy(), where=known)
        if self._by_least:
            cost_ns = np.where(self.known_cost_ns > 0.0, self.known_cost_ns, cost_ns)
        self.cost_ns = np.maximum(cost_ns, _LEAST_COST_NS)

    def _update_selectivity(self, new: Counts, kept: Floats) -> None:
        self._events_in = kept * self._events_in + new.taken
        self._events_out = kept * self._events_out + new.emitted
        known = (self._events_in > 0.5) & self._counted
        share = np.divide(self._events_out, self._events_in, out=self.selectivity.copy(), where=known)
        self.selectivity = np.maximum(share, _LEAST_SELECTIVITY)

    def _update_latency(self, new: Counts, elapsed_ns: int, now_ns: int) -> None:
        """Smooths the latency of each sink that saw a marker; the gradient is per second since the last one
        that it saw, relative to the latency."""
        seen = new.markers > 0.5
        mean_ns = np.divide(new.latency_ns, new.markers, out=np.full(len(seen), np.nan), where=seen)
        since_ns = np.where(self._marked_ns > 0.0, now_ns - self._marked_ns, elapsed_ns)
        kept = np.exp(-since_ns / _LATENCY_NS)
        before_ns = np.where(np.isnan(self.latency_ns), mean_ns, self.latency_ns)
        smooth_ns = np.where(seen, kept * before_ns + (1.0 - kept) * mean_ns, self.latency_ns)
        change = (smooth_ns - before_ns) / np.maximum(smooth_ns, 1.0) / (since_ns / 1e9)
        faded = math.exp(-elapsed_ns / _LATENCY_NS) * self.latency_gradient
        self.latency_gradient = np.where(seen, change, faded)
        self.latency_ns = smooth_ns
        self._marked_ns = np.where(seen, now_ns, self._marked_ns)
