"""Interval join: pairs of events of two streams with equal keys and a bounded distance in event time."""

from __future__ import annotations

import numpy as np

from penstock.operators.joins.join import Join
from penstock.operators.joins.join_kernels import Ints
from penstock.operators.run.base import Build
from penstock.operators.run.registry import runs
from penstock.query.steps import IntervalJoinSpec

# Buckets per length of the interval: more free events earlier, but each costs a look into the table.
_BUCKETS = 4


@runs(IntervalJoinSpec)
class IntervalJoin(Join):
    """``lower <= right time - left time <= upper``. A pair's time is that of its later event."""

    def __init__(self, build: Build) -> None:
        spec = build.node.spec_as(IntervalJoinSpec)
        self._lower, self._upper = spec.lower_us, spec.upper_us
        super().__init__(build, spec.on, spec.columns, max(self._upper - self._lower, 0) // _BUCKETS + 1)

    def reach(self, index: int) -> tuple[int, int, int, int]:
        if index == 0:
            return 0, 1, -self._lower, self._upper
        return 0, 1, self._upper, -self._lower

    def dead_before(self, index: int, watermark_us: int) -> int:
        # The first moment at which an event can still meet one at the watermark or later.
        first_useful = watermark_us - self._upper if index == 0 else watermark_us + self._lower
        return first_useful // self._bucket_us

    def pair_times(self, left: Ints, right: Ints, windows: Ints) -> Ints:
        return np.maximum(self.sides[0].times[left], self.sides[1].times[right])
