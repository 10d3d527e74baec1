"""Variances and standard deviations from sums of values and of their squares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.memory.layout import Columns
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import INT64, Accumulator, EventPlace, Finished, Slot, keeps
from penstock.operators.aggregates.exact_sums import variance_of
from penstock.operators.aggregates.sums import FloatSum, add_to
from penstock.query.aggregates.stddev import Stddev
from penstock.query.aggregates.variance import Variance
from penstock.query.types import DataType


@keeps(Variance)
class Spread(Accumulator):
    """Sums of values and of squares to twice the precision of a float64, so that they may cancel."""

    slots = (*FloatSum.slots, *FloatSum.slots, Slot(INT64, "0"))
    knows_null = True

    def __init__(self, function: Variance | Stddev, types: tuple[DataType, ...], strings: StringPool) -> None:
        """Of whatever type."""

    def update(self, at: Sequence[str], values: Sequence[str], place: EventPlace) -> list[str]:
        square = f"float64({values[0]}) * float64({values[0]})"
        return [
            *add_to(at[0], at[1], f"float64({values[0]})"),
            *add_to(at[2], at[3], square),
            f"{at[3]} += error_of_square(float64({values[0]}))",
            f"{at[4]} += 1",
        ]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [
            *add_to(at[0], at[1], other[0]),
            f"{at[1]} += {other[1]}",
            *add_to(at[2], at[3], other[2]),
            f"{at[3]} += {other[3]}",
            f"{at[4]} += {other[4]}",
        ]

    def finish(self, slots: Columns) -> Finished:
        return variance_of(*slots), slots[4] < 2


@keeps(Stddev)
class Deviation(Spread):
    """What a variance keeps."""

    def finish(self, slots: Columns) -> Finished:
        variances, nulls = super().finish(slots)
        return np.sqrt(variances), nulls
