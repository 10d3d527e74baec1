"""How many different values there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.builder import Code
from penstock.memory.layout import Columns
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import INT64, EventPlace, Finished, keeps
from penstock.operators.aggregates.collector import Collector, Ints, Kept
from penstock.query.aggregates.count_distinct import CountDistinct
from penstock.query.types import DataType


@keeps(CountDistinct)
class Distinct(Collector):
    """Values as words, as keys are, so that equal values are equal integers; strings are state as such."""

    def __init__(self, function: CountDistinct, types: tuple[DataType, ...], strings: StringPool) -> None:
        is_text = types[0] is DataType.STRING
        super().__init__([Kept("$value", DataType.STRING if is_text else DataType.INT64, INT64)])

    def taken(self, values: Sequence[Code], place: EventPlace) -> list[str]:
        (value,) = values
        return [f"float_word({value.value})" if value.dtype.is_float else f"int64({value.value})"]

    def results(self, owners: Ints, columns: Columns, count: int) -> Finished:
        return np.bincount(owners[self.needed(owners, columns)], minlength=count), None

    def needed(self, groups: Ints, columns: Columns) -> NDArray[Any]:
        (values,) = columns
        order = np.lexsort((values, groups))
        groups, values = groups[order], values[order]
        new = np.ones(len(groups), np.bool_)
        new[1:] = (values[1:] != values[:-1]) | (groups[1:] != groups[:-1])
        return order[new]
