"""Sums: of integers they wrap, of floats they lose nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.memory.layout import Columns
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import (
    FLOAT64,
    INT64,
    Accumulator,
    EventPlace,
    Finished,
    Native,
    Slot,
    keeps,
)
from penstock.query.aggregates.sum_ import Sum
from penstock.query.types import DataType


@keeps(Sum)
def summed(function: Sum, types: tuple[DataType, ...], strings: StringPool) -> Accumulator:
    return FloatSum() if types[0].is_float else IntSum()


class IntSum(Accumulator):
    slots = (Slot(INT64, "0", Native.SUM),)

    def update(self, at: Sequence[str], values: Sequence[str], place: EventPlace) -> list[str]:
        return [f"{at[0]} += int64({values[0]})"]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [f"{at[0]} += {other[0]}"]

    def finish(self, slots: Columns) -> Finished:
        return slots[0], None


class FloatSum(Accumulator):
    """Neumaier's sum: what is lost in each addition is summed apart."""

    slots = (Slot(FLOAT64, "0.0"), Slot(FLOAT64, "0.0"))

    def update(self, at: Sequence[str], values: Sequence[str], place: EventPlace) -> list[str]:
        return add_to(at[0], at[1], f"float64({values[0]})")

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [*add_to(at[0], at[1], other[0]), f"{at[1]} += {other[1]}"]

    def finish(self, slots: Columns) -> Finished:
        total, lost = slots
        # inf and NaN are what IEEE makes of them; only the loss is then meaningless
        return np.where(np.isfinite(total), total + np.where(np.isfinite(lost), lost, 0.0), total), None


def add_to(total: str, lost: str, value: str) -> list[str]:
    """Statements that add a float to a sum and what it lost."""
    return [f"{total}, {lost} = add_exactly({total}, {lost}, {value})"]
