"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

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
from penstock.query.types import Schema

_BUFFER_BYTES = 1 << 20  # of a column; without it a whole row group of all columns is in memory


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
        """Row groups outside the part are not read; one is decoded from its beginning, a buffer at a time."""
        path = part.path
        with opening(path), pq.ParquetFile(path, buffer_size=_BUFFER_BYTES) as file:
            check_columns(file.schema_arrow, schema, path)
            may_be_null = _columns_with_nulls(file)
            names = [f.name for f in schema if f.name in layout or (not f.nullable and f.name in may_be_null)]
            ends = _group_ends(file)
            stop = (ends[-1] if ends else 0) if part.stop is None else part.stop
            starts = [0, *ends][: len(ends)]
            groups = [
                number
                for number, (first, end) in enumerate(zip(starts, ends, strict=True))
                if first < stop and end > part.start
            ]
            columns = names or list(schema.names[:1])
            if groups:
                batches = file.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns)
                for batch in between(batches, starts[groups[0]], part.start, stop):
                    yield parsed(batch, schema, layout, strings)

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
