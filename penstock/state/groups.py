"""Tables of equal columns put together: many small tables cost little more than one.

A group holds the rows of its tables one after another in one record batch. A string column has the
dictionaries of the tables one after another too, so that each table can be cut out again with no strings but
its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from penstock.memory.arrow import ArrowArray
from penstock.state.tables import HASH, Ints, StateTables

#: An operator's id and the name of one of its tables.
TableName: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class SchemaGroup:
    """The rows of some tables that have one schema."""

    names: tuple[TableName, ...]
    counts: Ints  # rows of each table
    rows: pa.RecordBatch
    texts: dict[int, Ints]  # by column that has a dictionary: how much of it belongs to each table

    @cached_property
    def schema_id(self) -> str:
        """The same for equal schemas, in every process."""
        return xxhash.xxh3_128_hexdigest(self.rows.schema.serialize())

    @cached_property
    def starts(self) -> list[int]:
        """Where each table begins, and where the last one ends."""
        return [0, *accumulate(self.counts.tolist())]

    def held_partitions(self, virtual_partitions: int) -> list[int]:
        """The virtual partitions that each table has rows of, as the bits of a number."""
        owners = _owners(self.rows, virtual_partitions)
        if len(self.counts) > 1:
            owners = owners + np.repeat(np.arange(len(self.counts)) * virtual_partitions, self.counts)
        held = np.zeros(len(self.counts) * virtual_partitions, np.bool_)
        held[owners] = True
        packed = np.packbits(held.reshape(-1, virtual_partitions), axis=1, bitorder="little")
        return [int.from_bytes(bits.tobytes(), "little") for bits in packed]

    def in_partitions(self, partitions: Sequence[int], virtual_partitions: int) -> NDArray[np.bool_]:
        """Which rows belong to these virtual partitions."""
        wanted = np.zeros(virtual_partitions, np.bool_)
        wanted[list(partitions)] = True
        return wanted[_owners(self.rows, virtual_partitions)]

    def taken(self, places: Ints) -> SchemaGroup:
        """Some of the rows, in order, with no strings but theirs. Tables may be left without rows."""
        bounds = np.array(self.starts)
        counts = np.diff(np.searchsorted(places, bounds))
        columns: list[ArrowArray] = list(self.rows.take(places).columns)
        texts = {}
        for column, lengths in self.texts.items():
            columns[column], texts[column] = _used(columns[column], lengths)
        return SchemaGroup(self.names, counts, _batch(columns, self.rows.schema), texts)

    def tables(self) -> Iterator[tuple[TableName, pa.Table]]:
        """The tables that have rows. They share memory with the group."""
        schema, starts = self.rows.schema, self.starts
        coded = [
            (column, schema.field(column), _codes_by_table(self, column), [0, *accumulate(lengths.tolist())])
            for column, lengths in self.texts.items()
        ]
        words = {column: _column(self.rows, column).dictionary for column in self.texts}
        for number, name in enumerate(self.names):
            start, count = starts[number], starts[number + 1] - starts[number]
            if count == 0:
                continue
            part = self.rows.slice(start, count)
            for column, field, codes, spans in coded:
                first, end = spans[number : number + 2]
                mine = words[column].slice(first, end - first)
                part = part.set_column(
                    column, field, _dictionary(codes.slice(start, count), mine, field.type)
                )
            yield name, pa.Table.from_batches([part])


def grouped(state: Mapping[str, StateTables]) -> list[SchemaGroup]:
    """All tables that have rows, put together by schema; order of tables and rows is kept."""
    found: dict[tuple[str, ...], list[tuple[pa.Schema, list[TableName], list[pa.Table]]]] = {}
    for operator, tables in state.items():
        for name, table in tables.items():
            if table.num_rows == 0:
                continue
            kind = table.schema
            alike = found.setdefault(tuple(kind.names), [])
            for schema, names, members in alike:
                if schema.equals(kind, check_metadata=True):
                    names.append((operator, name))
                    members.append(table)
                    break
            else:
                alike.append((kind, [(operator, name)], [table]))
    return [_joined(*parts) for alike in found.values() for parts in alike]


def _joined(schema: pa.Schema, names: list[TableName], tables: list[pa.Table]) -> SchemaGroup:
    whole = pa.concat_tables(tables)
    if any(column.num_chunks != len(tables) for column in whole.columns):
        whole = pa.concat_tables([table.combine_chunks() for table in tables])
    counts = np.array([table.num_rows for table in tables], np.int64)
    columns: list[ArrowArray] = []
    texts: dict[int, Ints] = {}
    for number, kind in enumerate(schema.types):
        column: Any = whole.column(number)
        if pa.types.is_dictionary(kind):
            array, lengths = _joined_dictionaries(column.chunks, counts)
            if lengths.sum() > counts.sum():  # rows of a larger table: most of its strings are not theirs
                array, lengths = _used(array, lengths)
            columns.append(array)
            texts[number] = lengths
        else:
            columns.append(column.chunk(0) if column.num_chunks == 1 else column.combine_chunks())
    return SchemaGroup(tuple(names), counts, _batch(columns, schema), texts)


def _joined_dictionaries(chunks: list[ArrowArray], counts: Ints) -> tuple[ArrowArray, Ints]:
    """Codes that count through the dictionaries of all chunks, and the length of each dictionary."""
    words = [chunk.dictionary for chunk in chunks]
    lengths = np.array([len(each) for each in words], np.int64)
    if len(chunks) == 1:
        return chunks[0], lengths
    codes: ArrowArray = pa.concat_arrays([chunk.indices for chunk in chunks])
    shift = np.repeat(np.cumsum(lengths) - lengths, counts).astype(codes.type.to_pandas_dtype())
    codes = pc.add_checked(codes, pa.array(shift))
    return _dictionary(codes, pa.concat_arrays(words), chunks[0].type), lengths


def _codes_by_table(group: SchemaGroup, column: int) -> ArrowArray:
    """The codes of a column, counted from the beginning of each table's own dictionary."""
    codes: ArrowArray = _column(group.rows, column).indices
    if len(group.counts) == 1:
        return codes
    lengths = group.texts[column]
    shift = np.repeat(np.cumsum(lengths) - lengths, group.counts).astype(codes.type.to_pandas_dtype())
    return pc.subtract(codes, pa.array(shift))


def _used(array: ArrowArray, lengths: Ints) -> tuple[ArrowArray, Ints]:
    """The same strings with a dictionary of those in use only, and how many each table has left."""
    codes, nulls = plain_codes(array)
    used = np.zeros(len(array.dictionary), np.bool_)
    used[codes if nulls is None else codes[~nulls]] = True
    before = np.append(0, np.cumsum(used))  # how many are in use before each
    ends = np.cumsum(lengths)
    fresh: ArrowArray = pa.array(before[codes].astype(codes.dtype), mask=nulls)
    return (
        _dictionary(fresh, array.dictionary.take(pa.array(np.flatnonzero(used))), array.type),
        before[ends] - before[ends - lengths],
    )


def plain_codes(array: ArrowArray) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The codes of a dictionary array, and where it is null (None: nowhere). Null places hold 0."""
    codes: ArrowArray = array.indices
    nulls = None
    if codes.null_count:
        nulls = codes.is_null().to_numpy(zero_copy_only=False)
        codes = codes.fill_null(0)
    return codes.to_numpy(zero_copy_only=False), nulls


def _dictionary(codes: ArrowArray, words: ArrowArray, kind: Any) -> ArrowArray:
    return pa.DictionaryArray.from_arrays(codes, words, ordered=kind.ordered, safe=False)


def _column(rows: pa.RecordBatch, column: int) -> ArrowArray:
    return rows.column(column)


def _batch(columns: list[ArrowArray], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _owners(rows: pa.RecordBatch, virtual_partitions: int) -> Ints:
    hashes: Ints = rows.column(rows.schema.get_field_index(HASH)).to_numpy()
    if virtual_partitions & (virtual_partitions - 1) == 0:
        return hashes & (virtual_partitions - 1)  # the same, and much faster than a division
    return hashes % virtual_partitions
