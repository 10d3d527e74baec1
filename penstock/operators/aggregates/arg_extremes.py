"""A value of the event in which another is the least or the greatest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.memory.layout import Columns
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import INT64, Accumulator, EventPlace, Finished, Slot, keeps
from penstock.query.aggregates import ArgMax, ArgMin
from penstock.query.types import DataType

_MOST = np.iinfo(np.int64).max


@keeps(ArgMin, ArgMax)
class ArgExtremeSlots(Accumulator):
    """The value, what it is ranked by as an integer, and the event's place; the earliest of equal ones."""

    def __init__(self, function: ArgMin | ArgMax, types: tuple[DataType, ...], strings: StringPool) -> None:
        dtype, by = types
        self._better = "<" if isinstance(function, ArgMin) else ">"
        self._is_float = by.is_float
        worst = _MOST if isinstance(function, ArgMin) else -_MOST - 1
        ranks = [Slot(INT64, f"int64({start})") for start in (worst, _MOST, _MOST, _MOST)]
        self.slots = (Slot(dtype.numpy, "0", is_text=dtype is DataType.STRING), *ranks)

    def update(self, at: Sequence[str], values: Sequence[str], place: EventPlace) -> list[str]:
        value, by = values
        if not self._is_float:
            return [f"ranked = int64({by})", *self._taking(at, value, "ranked", place)]
        ranking = [f"ranked = float_word({by})", f"ranked ^= (ranked >> 63) & int64({_MOST})"]  # as floats go
        return [*ranking, *self._taking(at, value, "ranked", place)]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        value, rank, *place = other
        return self._taking(at, value, rank, EventPlace(*place))

    def finish(self, slots: Columns) -> Finished:
        return slots[0], None

    def _taking(self, at: Sequence[str], value: str, rank: str, place: EventPlace) -> list[str]:
        mine, ranked, time, order, sub = at
        inner = f"{place.order} == {order} and {place.sub} < {sub}"
        earlier = (
            f"{place.time} < {time} or ({place.time} == {time} and ({place.order} < {order} or ({inner})))"
        )
        return [
            f"if {rank} {self._better} {ranked} or ({rank} == {ranked} and ({earlier})):",
            f"    {mine} = {value}",
            f"    {ranked} = {rank}",
            f"    {time} = {place.time}",
            f"    {order} = {place.order}",
            f"    {sub} = {place.sub}",
        ]
