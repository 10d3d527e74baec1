"""The first and the last value in the order of events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.memory.layout import Columns
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import INT64, Accumulator, EventPlace, Finished, Slot, keeps
from penstock.query.aggregates.first import First
from penstock.query.aggregates.last import Last
from penstock.query.types import DataType


@keeps(First, Last)
class Outermost(Accumulator):
    """The value of the first or the last event by (time, order, sub)."""

    def __init__(self, function: First | Last, types: tuple[DataType, ...], strings: StringPool) -> None:
        (dtype,), first = types, isinstance(function, First)
        self._before = "<" if first else ">"
        limits = np.iinfo(np.int64)
        start = f"int64({limits.max})" if first else f"int64({limits.min})"
        self.slots = (Slot(dtype.numpy, "0", is_text=dtype is DataType.STRING), *(Slot(INT64, start),) * 3)

    def update(self, at: Sequence[str], values: Sequence[str], place: EventPlace) -> list[str]:
        kept, time, order, sub = at
        before = self._before
        inner = f"{place.order} == {order} and {place.sub} {before} {sub}"
        outer = f"{place.time} == {time} and ({place.order} {before} {order} or ({inner}))"
        return [
            f"if {place.time} {before} {time} or ({outer}):",
            f"    {kept} = {values[0]}",
            f"    {time} = {place.time}",
            f"    {order} = {place.order}",
            f"    {sub} = {place.sub}",
        ]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return self.update(at, other[:1], EventPlace(*other[1:]))

    def finish(self, slots: Columns) -> Finished:
        return slots[0], None
