"""Quantiles, from all values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.builder import Code
from penstock.memory.layout import Columns
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import FLOAT64, EventPlace, Finished, keeps
from penstock.operators.aggregates.collector import Collector, Ints, Kept
from penstock.query.aggregates.quantile import Quantile
from penstock.query.types import DataType


@keeps(Quantile)
class Ranked(Collector):
    """Values as float64, ranked when the group is complete."""

    def __init__(self, function: Quantile, types: tuple[DataType, ...], strings: StringPool) -> None:
        super().__init__([Kept("$value", DataType.FLOAT64, FLOAT64)])
        self._q = function.q

    def taken(self, values: Sequence[Code], place: EventPlace) -> list[str]:
        return [f"float64({values[0].value})"]

    def results(self, owners: Ints, columns: Columns, count: int) -> Finished:
        values = columns[0][np.lexsort((columns[0], owners))]  # NaN last
        counts = np.bincount(owners, minlength=count)
        empty = counts == 0
        results = np.zeros(count)
        first = (np.cumsum(counts) - counts)[~empty]
        position = self._q * (counts[~empty] - 1)
        below = np.floor(position).astype(np.int64)
        share = position - below
        low = values[first + below]
        high = values[np.minimum(first + below + 1, first + counts[~empty] - 1)]
        with np.errstate(invalid="ignore"):  # inf - inf
            results[~empty] = np.where(share == 0.0, low, low + (high - low) * share)
        return results, empty
