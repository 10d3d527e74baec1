"""How long a queue was over time, from when its events came and when they left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class QueueLengths:
    """The queue as a staircase: from ``since_s[i]`` on it has ``lengths[i]`` events, until ``until_s``
    at the last."""

    since_s: Floats
    lengths: NDArray[np.int64]
    until_s: float

    @classmethod
    def of(cls, arrived_s: Floats, left_s: Floats, until_s: float) -> QueueLengths:
        """From time 0 to ``until_s``."""
        arrived_s, left_s = arrived_s[arrived_s <= until_s], left_s[left_s <= until_s]
        times = np.concatenate(([0.0], arrived_s, left_s))
        steps = np.concatenate(([0], np.ones(len(arrived_s), np.int64), np.full(len(left_s), -1)))
        order = np.argsort(times, kind="stable")  # arrivals before departures of the same instant
        return cls(times[order], np.cumsum(steps[order]), until_s)

    def share_within(self, limit: int) -> float:
        """The share of time in which it had at most ``limit`` events."""
        return float(self._widths[self.lengths <= limit].sum() / self._widths.sum())

    def percentile(self, percent: float) -> int:
        """The length that it did not exceed in that share of time."""
        order = np.argsort(self.lengths, kind="stable")
        reached = np.cumsum(self._widths[order])
        place = int(np.searchsorted(reached, percent / 100.0 * reached[-1]))
        return int(self.lengths[order[min(place, len(order) - 1)]])

    def sampled(self, every_s: float) -> NDArray[np.int64]:
        """Its length at regular times, as the paper measures it (every 10 s)."""
        at = np.arange(every_s, self.until_s, every_s)
        found: NDArray[np.int64] = self.lengths[np.searchsorted(self.since_s, at, side="right") - 1]
        return found

    @property
    def longest(self) -> int:
        return int(self.lengths.max())

    @property
    def _widths(self) -> Floats:
        return np.diff(self.since_s, append=self.until_s)
