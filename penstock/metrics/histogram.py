"""A latency histogram: buckets that grow by a fixed ratio, so that every quantile is known to about 2 %."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_RATIO = 1.02
_FIRST_NS = 1_000  # one microsecond; anything faster counts as that
_BUCKETS = 1_200  # the last bucket starts beyond five hours
_LOG_RATIO = math.log(_RATIO)


class LatencyHistogram:
    """Collects durations. One thread records; anyone may take a snapshot."""

    __slots__ = ("_counts", "_largest_ns", "recorded", "total_ns")

    def __init__(self) -> None:
        self._counts: NDArray[np.int64] = np.zeros(_BUCKETS, np.int64)
        self._largest_ns = 0
        self.recorded = 0
        self.total_ns = 0

    def record(self, duration_ns: int) -> None:
        """Counts one duration."""
        bucket = 0
        if duration_ns > _FIRST_NS:
            bucket = min(_BUCKETS - 1, int(math.log(duration_ns / _FIRST_NS) / _LOG_RATIO) + 1)
        self._counts[bucket] += 1
        self.recorded += 1
        self.total_ns += duration_ns
        self._largest_ns = max(self._largest_ns, duration_ns)

    def snapshot(self) -> LatencySnapshot:
        """What was recorded so far, as a value."""
        counts = self._counts.copy()
        counts.setflags(write=False)
        return LatencySnapshot(counts, self.total_ns, self._largest_ns)


@dataclass(frozen=True, eq=False)
class LatencySnapshot:
    """A histogram that no longer changes."""

    counts: NDArray[np.int64]
    total_ns: int
    largest_ns: int

    @property
    def count(self) -> int:
        return int(self.counts.sum())

    @property
    def mean_ms(self) -> float:
        return self.total_ns / self.count / 1e6 if self.count else math.nan

    def quantile_ms(self, q: float) -> float:
        """The smallest bucket bound that at least a share ``q`` of the durations does not exceed; NaN of
        none."""
        if self.count == 0:
            return math.nan
        rank = max(1, math.ceil(q * self.count))
        bucket = int(np.searchsorted(np.cumsum(self.counts), rank))
        return min(_FIRST_NS * _RATIO**bucket, float(max(self.largest_ns, _FIRST_NS))) / 1e6

    def share_within(self, limit_ms: float) -> float:
        """The share of durations in buckets that end within the limit; NaN of none."""
        if self.count == 0:
            return math.nan
        last = math.floor(math.log(max(limit_ms * 1e6, _FIRST_NS) / _FIRST_NS) / _LOG_RATIO + 1e-9)
        return int(self.counts[: last + 1].sum()) / self.count

    def __sub__(self, earlier: LatencySnapshot) -> LatencySnapshot:
        """What was recorded after ``earlier``. The largest stays the largest of all."""
        return LatencySnapshot(
            self.counts - earlier.counts, self.total_ns - earlier.total_ns, self.largest_ns
        )

    def __add__(self, other: LatencySnapshot) -> LatencySnapshot:
        """Both together."""
        return LatencySnapshot(
            self.counts + other.counts, self.total_ns + other.total_ns, max(self.largest_ns, other.largest_ns)
        )
