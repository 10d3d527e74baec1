"""The least and the greatest value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.code import SCALAR
from penstock.memory.layout import Columns
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import Accumulator, EventPlace, Finished, Native, Slot, keeps
from penstock.query.aggregates.max_ import Max
from penstock.query.aggregates.min_ import Min
from penstock.query.types import DataType


@keeps(Min, Max)
class ExtremeSlots(Accumulator):
    """The least or the greatest; NaN is above every number."""

    def __init__(self, function: Min | Max, types: tuple[DataType, ...], strings: StringPool) -> None:
        (dtype,), least = types, isinstance(function, Min)
        self._least, self._float = least, dtype.is_float
        if dtype.is_float:
            start = "np.nan" if least else "-np.inf"
        else:
            limits = np.iinfo(dtype.numpy)
            start = f"{SCALAR[dtype]}({limits.max if least else limits.min})"
        self.slots = (Slot(dtype.numpy, start, Native.LEAST if least else Native.GREATEST),)

    def update(self, at: Sequence[str], values: Sequence[str], place: EventPlace) -> list[str]:
        (mine,), (value,) = at, values
        if self._least:
            better = f"{value} < {mine}" + (f" or {mine} != {mine}" if self._float else "")
        else:
            better = f"{value} > {mine}" + (f" or {value} != {value}" if self._float else "")
        return [f"if {better}:", f"    {mine} = {value}"]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return self.update(at, other, EventPlace("", "", ""))

    def finish(self, slots: Columns) -> Finished:
        return slots[0], None
