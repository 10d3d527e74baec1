"""The state of aggregates as tables: one row per group with its accumulators, and one per collected value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.memory.layout import Columns
from penstock.operators.windows.aggregation import Aggregation
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.types import DataType, Field
from penstock.state.keys import Words
from penstock.state.table import ABSENT, KeyTable
from penstock.state.tables import StateFormat, StateRows, key_fields, key_words

Ints = NDArray[np.int64]

_TYPES: dict[np.dtype[Any], DataType] = {
    dtype.numpy: dtype
    for dtype in (DataType.BOOL, DataType.INT32, DataType.INT64, DataType.FLOAT32, DataType.FLOAT64)
}


class AggregationState:
    """Exports and imports the groups of an aggregation.

    A group is known by one number of its own (``identity``: its pane, or the start of its session) and its
    key: *words* here are rows of (number, key words). ``more`` are further int64 columns of a group.
    """

    def __init__(self, aggregation: Aggregation, identity: str, more: Sequence[str] = ()) -> None:
        self._aggregation = aggregation
        self._more = len(more)
        named = [Field(identity, DataType.INT64), *key_fields(aggregation.keys)]
        slots: list[Field] = []
        names = aggregation.names(collected=False)
        for name, part in zip(names, aggregation.parts, strict=True):
            for place, slot in enumerate(part.slots):
                dtype = DataType.STRING if slot.is_text else _TYPES[slot.dtype]
                slots.append(Field(f"${name}.{place}", dtype, nullable=slot.is_text))
        names = aggregation.names(collected=True)
        groups = [*named, *(Field(name, DataType.INT64) for name in more), *slots]
        self.formats = (
            StateFormat("groups", groups),
            *(
                StateFormat(f"values.{name}", [*named, *(Field(one.name, one.dtype) for one in part.columns)])
                for name, part in zip(names, aggregation.collected, strict=True)
            ),
        )

    def rows(
        self, groups: NDArray[Any], words: Words, key_hash: KeyHash | None, more: Columns = ()
    ) -> list[StateRows]:
        """The rows of each of ``formats``. Groups are numbers of accumulators; words and more are per
        group. Without a hash, which only a step has that someone reads, there are none.
        """
        if key_hash is None or not len(groups):
            return [(kept.layout.allocate(0), np.zeros(0, np.int64)) for kept in self.formats]
        aggregation = self._aggregation
        slots: list[NDArray[Any]] = []
        arrays = iter(aggregation.accumulators.arrays)
        for part in aggregation.parts:
            values = tuple(next(arrays)[groups] for _ in part.slots)
            unset = part.unset(values)
            for slot, value in zip(part.slots, values, strict=True):
                slots.append(value)
                if slot.is_text:
                    slots.append(np.zeros(len(groups), np.bool_) if unset is None else unset)
        keys = aggregation.keys.decode(words[:, 1:])
        hashes = key_hash.of_columns(keys, len(groups))
        named = (words[:, 0], *keys)
        made: list[StateRows] = [((*named, *more, *slots), hashes)]
        if not aggregation.collected:
            return made
        row_of = np.zeros(int(groups.max()) + 1, np.int64)
        row_of[groups] = np.arange(len(groups))
        for collected in aggregation.collected:
            members, values_of = collected.rows()
            rows = row_of[members]
            made.append(((*(column[rows] for column in named), *values_of), hashes[rows]))
        return made

    def words(self, columns: Columns) -> Words:
        """The words of the rows of a table."""
        keys = self._aggregation.keys
        words = np.empty((len(columns[0]), keys.width + 1), np.int64)
        words[:, 0] = columns[0]
        words[:, 1:] = key_words(keys, self.formats[0].layout, columns)  # all tables begin alike
        return words

    def more(self, columns: Columns) -> Columns:
        """The further columns of groups."""
        begin = 1 + sum(1 + field.nullable for field in self._aggregation.keys.fields)
        return columns[begin : begin + self._more]

    def collect(self, rows: list[Columns], table: KeyTable) -> None:
        """Takes values in; ``rows`` are those of all tables, and ``table`` knows the groups by their words,
        those of the first table included.
        """
        for collected, values in zip(self._aggregation.collected, rows[1:], strict=True):
            if len(values[0]):
                found = table.find(self.words(values))
                assert not (found == ABSENT).any(), "every collected value has its group in the same export"
                collected.add(found, values[-len(collected.columns) :])

    def restore(self, rows: list[Columns], words: Words, groups: Ints) -> None:
        """Takes accumulators and values in; ``words`` are those of the first table, and ``groups`` where its
        rows now are. The accumulators must have room.
        """
        aggregation = self._aggregation
        columns = iter(rows[0][len(rows[0]) - self._slot_columns() :])
        arrays = iter(aggregation.accumulators.arrays)
        for part in aggregation.parts:
            for slot in part.slots:
                next(arrays)[groups] = next(columns)
                if slot.is_text:
                    next(columns)  # where it is null another slot says so too
        known = KeyTable(words.shape[1])
        if aggregation.collected:
            known.insert(words)
        for collected, values in zip(aggregation.collected, rows[1:], strict=True):
            found = known.find(self.words(values))
            assert not (found == ABSENT).any(), "every collected value has its group in the same export"
            collected.add(groups[found], values[-len(collected.columns) :])

    def _slot_columns(self) -> int:
        return sum(1 + slot.is_text for part in self._aggregation.parts for slot in part.slots)
