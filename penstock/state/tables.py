"""State as Arrow tables: columns that any process can read, in rows that know which virtual partition they
belong to.

Users' names stand as they are; names that begin with ``$`` are ours. Every table begins with ``$hash``,
Spark's ``xxhash64`` of the row's key, which is also what events are routed by. Strings are strings: the codes
of a run's dictionary never leave its process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

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
_INT32, _INT64, _TEXT = pa.int32(), pa.int64(), pa.string()
_STRING = pa.dictionary(_INT32, _TEXT)
_FEW = 64  # values that Python tells apart faster than numpy sorts them


class FieldPlace(NamedTuple):
    """How one field stands in columns and in a table."""

    field: Field
    is_text: bool
    flat: np.dtype[Any] | None  # the numpy type of values that Arrow keeps with the same bits
    kind: pa.DataType
    data: int
    nulls: int | None


class StateFormat:
    """The name and the columns of one state table of an operator, ``$hash`` aside."""

    __slots__ = ("_places", "layout", "name", "schema")

    def __init__(self, name: str, fields: Iterable[Field]) -> None:
        self.name = name
        self.layout = Layout(fields)
        self.schema: pa.Schema = pa.schema(
            [pa.field(HASH, pa.int64(), False)]
            + [pa.field(f.name, _arrow_type(f.dtype), f.nullable) for f in self.layout.fields]
        )
        # Looked up once: tables may be small and many.
        self._places = [
            FieldPlace(
                field,
                field.dtype is DataType.STRING,
                None if field.dtype in (DataType.STRING, DataType.BOOL) else field.dtype.numpy,
                self.schema.field(number).type,
                self.layout.data(field.name),
                self.layout.nulls(field.name),
            )
            for number, field in enumerate(self.layout.fields, 1)
        ]

    def table(self, columns: Columns, hashes: Ints, strings: StringPool) -> pa.Table:
        """The rows as an Arrow table, which may share memory with the columns."""
        arrays: list[ArrowArray] = [flat_array(hashes, _INT64)]
        for field, is_text, flat, kind, place, mask in self._places:
            data, nulls = columns[place], None if mask is None else columns[mask]
            if is_text:
                arrays.append(_texts(data, nulls, strings))
            elif nulls is None and flat is not None:
                arrays.append(flat_array(data, kind))
            else:
                array: ArrowArray = pa.array(np.ascontiguousarray(data), mask=nulls)
                arrays.append(array.cast(kind) if field.dtype is DataType.TIMESTAMP else array)
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
        batches = table.to_batches()
        if len(batches) == 1:  # nearly always: nothing to join
            return self._batch_columns(batches[0], strings)
        parts = [self.layout.allocate(0), *(self._batch_columns(batch, strings) for batch in batches)]
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))

    def _batch_columns(self, batch: pa.RecordBatch, strings: StringPool) -> Columns:
        columns: list[NDArray[Any]] = []
        for number, (field, is_text, flat, _, _, mask) in enumerate(self._places, 1):  # $hash comes first
            array: ArrowArray = batch.column(number)
            nulls = None
            if flat is not None and not array.null_count:  # the buffer itself, copied
                columns.append(array.to_numpy().view(flat).copy())
            elif is_text and not array.null_count:
                columns.append(_codes(array, strings))
            else:
                data, nulls = numpy_from_arrow(array, field, strings)
                columns.append(data)
            if mask is not None:
                columns.append(np.zeros(len(array), np.bool_) if nulls is None else nulls)
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


def flat_array(data: NDArray[Any], kind: pa.DataType) -> ArrowArray:
    """Numbers or times without nulls: the very memory, in the Arrow type that has the same bits."""
    memory: Any = np.ascontiguousarray(data)
    return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(memory)])


def _texts(codes: NDArray[Any], nulls: NDArray[np.bool_] | None, strings: StringPool) -> ArrowArray:
    """Each distinct string once, and indices: a key that has many rows costs its length only once."""
    shown = codes if nulls is None else codes[~nulls]
    if len(shown) <= _FEW:
        places_of: dict[int, int] = {}
        listed = [places_of.setdefault(code, len(places_of)) for code in shown.tolist()]
        inverse: Ints = np.array(listed, np.int64)
        words = _few_strings([strings.text(code) for code in places_of])
    else:
        distinct, inverse = np.unique(shown, return_inverse=True)
        words = pa.array([strings.text(code) for code in distinct.tolist()], _TEXT)
    if nulls is None:
        indices: ArrowArray = flat_array(inverse.astype(np.int32), _INT32)
    else:
        places = np.zeros(len(codes), np.int32)
        places[~nulls] = inverse
        indices = pa.array(places, mask=nulls)
    return pa.DictionaryArray.from_arrays(indices, words)


def _few_strings(texts: list[str]) -> ArrowArray:
    """As ``pa.array`` makes them, which for a list looks for pandas first and takes longer than this."""
    encoded = [text.encode() for text in texts]
    ends: Any = np.array([0, *accumulate(map(len, encoded))], np.int32)
    return pa.Array.from_buffers(
        _TEXT, len(texts), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    )


def _codes(array: ArrowArray, strings: StringPool) -> NDArray[np.int32]:
    """The codes of a dictionary array without nulls."""
    mapping = strings.codes(array.dictionary.to_pylist())
    codes: NDArray[np.int32] = mapping[array.indices.to_numpy()]
    return codes


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
