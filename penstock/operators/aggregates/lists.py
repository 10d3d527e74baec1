"""Lists of the first values of a group."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.builder import Code
from penstock.memory.layout import Columns
from penstock.memory.strings import StringPool
from penstock.operators.aggregates.accumulator import INT64, EventPlace, Finished, keeps
from penstock.operators.aggregates.collector import Collector, Ints, Kept
from penstock.query.aggregates import CollectList
from penstock.query.types import DataType


@keeps(CollectList)
class FirstValues(Collector):
    """Values with their places. When there is no more room, those beyond the limit go first."""

    def __init__(self, function: CollectList, types: tuple[DataType, ...], strings: StringPool) -> None:
        self._dtype, self._limit, self._strings = types[0], function.limit, strings
        stored = DataType.INT64 if self._dtype is DataType.TIMESTAMP else self._dtype
        places = [Kept(name, DataType.INT64, INT64) for name in ("$time", "$order", "$sub")]
        super().__init__([Kept("$value", stored, stored.numpy), *places])

    def taken(self, values: Sequence[Code], place: EventPlace) -> list[str]:
        return [values[0].value, place.time, place.order, place.sub]

    def needed(self, groups: Ints, columns: Columns) -> NDArray[Any]:
        _, time, order, sub = columns
        rows = np.lexsort((sub, order, time, groups))
        groups, numbers = groups[rows], np.arange(len(rows))
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = groups[1:] != groups[:-1]
        return rows[numbers - np.maximum.accumulate(np.where(is_first, numbers, 0)) < self._limit]

    def reserve(self, added: int) -> None:
        room = len(self._groups)
        if self.count + added > room:
            self._keep(self.needed(self._groups[: self.count], self._columns()))
            if 2 * (self.count + added) > room:  # else it would not last
                self._resize(2 * (self.count + added))

    def results(self, owners: Ints, columns: Columns, count: int) -> Finished:
        rows = self.needed(owners, columns)
        sizes = np.bincount(owners[rows], minlength=count)
        values: list[Any] = columns[0][rows].tolist()
        if self._dtype is DataType.STRING:
            values = [self._strings.text(code) for code in values]
        ends = np.cumsum(sizes)
        listed = (values[end - size : end] for end, size in zip(ends.tolist(), sizes.tolist(), strict=True))
        texts = (json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in listed)
        return self._strings.codes(texts), sizes == 0
