"""Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.files.decoding import Piece
from penstock.connectors.files.parts import FilePart
from penstock.connectors.formats.lines import Parsed
from penstock.connectors.formats.tables import (
    BATCH_ROWS,
    TableFile,
    TableFormat,
    between,
    check_columns,
    opening,
    parsed,
)
from penstock.memory.arrow import schema_from_arrow
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.types import DataType, Schema

_BUFFER_BYTES = 1 << 20  # of a column; without it a whole row group of all columns is in memory
_GROUP_BYTES = 1 << 25  # a row group that has more, decompressed, is not decoded in one piece


@dataclass(frozen=True)
class ParquetFormat(TableFormat):
    """Parquet, read a row group at a time. Columns that nobody needs are not read."""

    name = "parquet"
    endings = (".parquet", ".pq")

    def infer(self, path: Path) -> Schema:
        """A column may hold nulls if it does in this file."""
        with opening(path, QueryError), pq.ParquetFile(path) as file:
            return schema_from_arrow(file.schema_arrow, _columns_with_nulls(file))

    def batches(
        self, part: FilePart, schema: Schema, layout: Layout, strings: StringPool
    ) -> Iterator[Parsed]:
        for piece in self.pieces(part, schema, layout, strings):
            yield piece()

    def pieces(
        self, part: FilePart, schema: Schema, layout: Layout, strings: StringPool
    ) -> Iterator[Piece[Parsed]]:
        """A row group each. One that is large is decoded a buffer at a time, its columns side by side; row
        groups outside the part are not read."""
        path = part.path
        with opening(path), _opened(path, schema) as file:
            check_columns(file.schema_arrow, schema, path)
            may_be_null = _columns_with_nulls(file)
            names = [f.name for f in schema if f.name in layout or (not f.nullable and f.name in may_be_null)]
            columns = names or list(schema.names[:1])
            reading = partial(parsed, schema=schema, layout=layout, strings=strings)
            first = 0
            for number in range(file.metadata.num_row_groups):
                group = file.metadata.row_group(number)
                start, stop = max(part.start, first), first + group.num_rows
                if part.stop is not None:
                    stop = min(stop, part.stop)
                if start < stop and group.total_byte_size <= _GROUP_BYTES:
                    rows = _Rows(path, file.metadata, number, start - first, stop - start)
                    yield partial(_decoded, rows, schema, columns, reading)
                elif start < stop:
                    batches = file.iter_batches(BATCH_ROWS, row_groups=[number], columns=columns)
                    for batch in between(batches, first, start, stop):
                        yield partial(reading, batch)
                first += group.num_rows

    def units_in(self, path: Path) -> int:
        return (_groups(path) or ((0, 0),))[-1][0]

    def bytes_per_event(self, path: Path) -> int:
        return sum(size for _, size in _groups(path)) // max(1, self.units_in(path))

    def cut(self, path: Path, begin: int, place: int) -> int | None:
        """With a row group, so that the next part need not decode it again, unless this one would be less
        than half as long."""
        ends = [end for end, _ in _groups(path) if begin + (place - begin) // 2 < end <= place]
        return ends[-1] if ends else place

    def create(self, path: Path, schema: pa.Schema) -> TableFile:
        return pq.ParquetWriter(path, schema)


@dataclass(frozen=True)
class _Rows:
    """Some rows of a row group."""

    path: Path
    metadata: pq.FileMetaData
    group: int
    start: int
    count: int


def _opened(path: Path, schema: Schema, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Texts come as codes of a dictionary where the file has one: it is looked up once for all rows."""
    texts = [field.name for field in schema if field.dtype is DataType.STRING]
    return pq.ParquetFile(path, metadata=metadata, buffer_size=_BUFFER_BYTES, read_dictionary=texts)


def _decoded(
    rows: _Rows, schema: Schema, columns: list[str], reading: Callable[[pa.RecordBatch], Parsed]
) -> Parsed:
    with opening(rows.path), _opened(rows.path, schema, rows.metadata) as file:
        table = file.read_row_group(rows.group, columns=columns, use_threads=False)
    (batch,) = table.slice(rows.start, rows.count).combine_chunks().to_batches()
    return reading(batch)


@lru_cache(4)
def _groups_of(path: Path, changed_ns: int) -> tuple[tuple[int, int], ...]:
    """Where each row group of a file ends, and how much data it has, decompressed."""
    with opening(path), pq.ParquetFile(path) as file:
        metadata = file.metadata
        sizes = [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]
        return tuple(zip(_group_ends(file), sizes, strict=True))


def _groups(path: Path) -> tuple[tuple[int, int], ...]:
    with opening(path):
        return _groups_of(path, path.stat().st_mtime_ns)


def _group_ends(file: pq.ParquetFile) -> list[int]:
    metadata = file.metadata
    return list(accumulate(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)))


def _columns_with_nulls(file: pq.ParquetFile) -> set[str]:
    """The columns that hold nulls, or may, for want of statistics."""
    declared = {field.name for field in file.schema_arrow if field.nullable}
    nullable: set[str] = set()
    metadata = file.metadata
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            statistics: Any = column.statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                nullable.add(column.path_in_schema.split(".")[0])
    return declared & nullable
