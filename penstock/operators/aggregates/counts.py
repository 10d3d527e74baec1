"""How many events there are."""

from __future__ import annotations

from collections.abc import Sequence

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
from penstock.query.aggregates.count import Count
from penstock.query.types import DataType


@keeps(Count)
class Counted(Accumulator):
    slots = (Slot(INT64, "0", Native.COUNT),)
    knows_null = True

    def __init__(self, function: Count, types: tuple[DataType, ...], strings: StringPool) -> None:
        """Of whatever type."""

    def update(self, at: Sequence[str], values: Sequence[str], place: EventPlace) -> list[str]:
        return [f"{at[0]} += 1"]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [f"{at[0]} += {other[0]}"]

    def finish(self, slots: Columns) -> Finished:
        return slots[0], None
