"""Means, exact before the one division."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.memory.layout import Columns
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import (
    INT64,
    Accumulator,
    EventPlace,
    Finished,
    Native,
    Slot,
    keeps,
)
from penstock.operators.aggregates.sums import FloatSum
from penstock.query.aggregates.avg import Avg
from penstock.query.types import DataType


@keeps(Avg)
def averaged(function: Avg, types: tuple[DataType, ...], strings: StringPool) -> Accumulator:
    return _FloatAverage() if types[0].is_float else _IntAverage()


class _FloatAverage(Accumulator):
    slots = (*FloatSum.slots, Slot(INT64, "0"))

    knows_null = True

    def __init__(self) -> None:
        self._sum = FloatSum()

    def update(self, at: Sequence[str], values: Sequence[str], place: EventPlace) -> list[str]:
        return [*self._sum.update(at, values, place), f"{at[2]} += 1"]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [*self._sum.merge(at, other), f"{at[2]} += {other[2]}"]

    def finish(self, slots: Columns) -> Finished:
        return self._sum.finish(slots[:2])[0] / np.maximum(slots[2], 1), slots[2] == 0


class _IntAverage(Accumulator):
    """Sums of the upper and the lower 32 bits, which neither round nor overflow."""

    slots = (
        Slot(INT64, "0", Native.SUM_UPPER),
        Slot(INT64, "0", Native.SUM_LOWER),
        Slot(INT64, "0", Native.COUNT),
    )
    knows_null = True

    def update(self, at: Sequence[str], values: Sequence[str], place: EventPlace) -> list[str]:
        return [
            f"{at[0]} += int64({values[0]}) >> 32",
            f"{at[1]} += int64({values[0]}) & 0xFFFFFFFF",
            f"{at[2]} += 1",
        ]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [f"{mine} += {theirs}" for mine, theirs in zip(at, other, strict=True)]

    def finish(self, slots: Columns) -> Finished:
        upper, lower, count = slots
        carried = upper + (lower >> 32)  # now 0 <= rest < 2**32: nothing cancels
        rest = lower & 0xFFFFFFFF
        return (carried * 4294967296.0 + rest) / np.maximum(count, 1), count == 0
