"""State as Arrow tables: columns that any process can read, in rows that know which virtual partition they
belong to.

Users' names stand as they are; names that begin with ``$`` are ours. Every table begins with ``$hash``,
Spark's ``xxhash64`` of the row's key, which is also what events are routed by. Strings are strings: the codes
of a run's dictionary never leave its process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.memory.arrow import ArrowArray, arrow_type, numpy_from_arrow
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.types import DataType, Field
from penstock.state.errors import StateError
from penstock.state.keys import KeyWords, Words

Ints = NDArray[np.int64]

#: All state of one operator: tables by name. One without rows is left out.
StateTables: TypeAlias = dict[str, pa.Table]

#: Rows of one table as an operator has them: columns in the layout of their format, and the keys' hashes.
StateRows: TypeAlias = tuple[Columns, Ints]

HASH = "$hash"
_KEY = "$key."
_STRING = pa.dictionary(pa.int32(), pa.string())


class TableFormat:
    """The name and the columns of one state table of an operator, ``$hash`` aside."""

    __slots__ = ("layout", "name", "schema")

    def __init__(self, name: str, fields: Iterable[Field]) -> None:
        self.name = name
        self.layout = Layout(fields)
        self.schema: pa.Schema = pa.schema(
            [pa.field(HASH, pa.int64(), False)]
            + [pa.field(f.name, _arrow_type(f.dtype), f.nullable) for f in self.layout.fields]
        )

    def table(self, columns: Columns, hashes: Ints, strings: StringPool) -> pa.Table:
        """The rows as an Arrow table."""
        arrays: list[ArrowArray] = [pa.array(hashes)]
        for field in self.layout.fields:
            data = columns[self.layout.data(field.name)]
            place = self.layout.nulls(field.name)
            nulls = None if place is None else columns[place]
            if field.dtype is DataType.STRING:
                arrays.append(_texts(data, nulls, strings))
            else:
                array: ArrowArray = pa.array(np.ascontiguousarray(data), mask=nulls)
                is_time = field.dtype is DataType.TIMESTAMP
                arrays.append(array.cast(arrow_type(field.dtype)) if is_time else array)
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def columns(self, table: pa.Table | None, strings: StringPool, operator: str) -> Columns:
        """The rows of a table, copied; none of None. Raises ``StateError`` if its columns are others."""
        if table is None:
            return self.layout.allocate(0)
        if not table.schema.equals(self.schema):
            raise StateError(
                "state does not fit its operator",
                f"table '{self.name}' of '{operator}' has ({_listed(table.schema)}), "
                f"the operator keeps ({_listed(self.schema)})",
                "the step has changed: start it under another name, or from an empty checkpoint",
            )
        columns: list[NDArray[Any]] = []
        for field in self.layout.fields:
            chunks: list[ArrowArray] = table.column(field.name).chunks
            parts = [numpy_from_arrow(chunk, field, strings) for chunk in chunks]
            columns.append(_joined([data for data, _ in parts], field.dtype.numpy))
            if field.nullable:
                masks = [np.zeros(len(data), np.bool_) if nulls is None else nulls for data, nulls in parts]
                columns.append(_joined(masks, np.dtype(np.bool_)))
        return tuple(columns)


def key_fields(keys: KeyWords) -> list[Field]:
    """The columns that hold keys: ``KeyWords.decode`` gives their arrays."""
    return [Field(_KEY + field.name, field.dtype, field.nullable) for field in keys.fields]


def key_words(keys: KeyWords, layout: Layout, columns: Columns) -> Words:
    """The words of the keys in columns that ``key_fields`` describes, among others."""
    names = [_KEY + field.name for field in keys.fields]
    return keys.encode(layout, columns, 0, len(columns[0]), names)


# -- virtual partitions --------------------------------------------------------------------------------------


def virtual_partitions(table: pa.Table, count: int) -> Ints:
    """The virtual partition of each row, of ``count``: ``pmod(hash, count)``."""
    hashes: Ints = table.column(HASH).to_numpy()
    return hashes % count  # Python's and numpy's remainder has the sign of the divisor, as ``pmod``


def by_partition(table: pa.Table, count: int) -> tuple[pa.Table, list[int], list[int]]:
    """The rows sorted by virtual partition, which partitions there are, and where the rows of each end."""
    owners = virtual_partitions(table, count)
    order = np.argsort(owners, kind="stable")
    owners = owners[order]
    ends = np.append(np.flatnonzero(owners[1:] != owners[:-1]) + 1, len(owners))
    return table.take(order), owners[ends - 1].tolist(), ends.tolist()


def select(tables: StateTables, partitions: Iterable[int], count: int) -> StateTables:
    """The rows of these virtual partitions, of ``count``."""
    wanted = np.zeros(count, np.bool_)
    wanted[list(partitions)] = True
    chosen: StateTables = {}
    for name, table in tables.items():
        mask = wanted[virtual_partitions(table, count)]
        if mask.any():
            chosen[name] = table.filter(pa.array(mask))
    return chosen


def merge(parts: Sequence[Mapping[str, pa.Table]]) -> StateTables:
    """The rows of several exports of one operator; they must have no virtual partition in common."""
    found: dict[str, list[pa.Table]] = {}
    for part in parts:
        for name, table in part.items():
            found.setdefault(name, []).append(table)
    return {
        name: tables[0] if len(tables) == 1 else pa.concat_tables(tables) for name, tables in found.items()
    }


# -- columns -------------------------------------------------------------------------------------------------


def _arrow_type(dtype: DataType) -> pa.DataType:
    return _STRING if dtype is DataType.STRING else arrow_type(dtype)


def _texts(codes: NDArray[Any], nulls: NDArray[np.bool_] | None, strings: StringPool) -> ArrowArray:
    """Each distinct string once, and indices: a key that has many rows costs its length only once."""
    shown = codes if nulls is None else codes[~nulls]
    distinct, inverse = np.unique(shown, return_inverse=True)
    places = np.zeros(len(codes), np.int32)
    places[slice(None) if nulls is None else ~nulls] = inverse
    words: ArrowArray = pa.array([strings.text(code) for code in distinct.tolist()], pa.string())
    indices: ArrowArray = pa.array(places, mask=nulls)
    return pa.DictionaryArray.from_arrays(indices, words)


def _joined(parts: Sequence[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype, copy=False)


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
