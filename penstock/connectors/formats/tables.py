"""Files of Arrow tables: Parquet and Arrow IPC, read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.files.parts import FilePart
from penstock.connectors.formats.lines import BadLine, Parsed
from penstock.connectors.formats.values import decode
from penstock.memory.arrow import schema_from_arrow, type_fits
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema

_BATCH_ROWS = 65_536
_BUFFER_BYTES = 1 << 20  # of a column; without it a whole row group of all columns is in memory


def read_parquet(part: FilePart, schema: Schema, layout: Layout, strings: StringPool) -> Iterator[Parsed]:
    """Rows of a Parquet file. Columns that nobody needs are not read, nor row groups outside the part; a row
    group is decoded from its beginning, a buffer at a time."""
    path = part.path
    with _opening(path), pq.ParquetFile(path, buffer_size=_BUFFER_BYTES) as file:
        _check(file.schema_arrow, schema, path)
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
        batches = file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=columns) if groups else iter(())
        for batch in _between(batches, starts[groups[0]] if groups else 0, part.start, stop):
            yield _parsed(batch, schema, layout, strings)


def read_arrow(part: FilePart, schema: Schema, layout: Layout, strings: StringPool) -> Iterator[Parsed]:
    """Rows of an Arrow IPC file, in the file or the stream format."""
    path = part.path
    with _opening(path), pa.memory_map(str(path)) as memory:
        stored, batches = _arrow_batches(memory)
        _check(stored, schema, path)
        for batch in _between(batches, 0, part.start, part.stop):
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                yield _parsed(batch.slice(start, _BATCH_ROWS), schema, layout, strings)


def parquet_schema(path: Path) -> Schema:
    """The file's schema; a column may hold nulls here if it does in this file."""
    with _opening(path, QueryError), pq.ParquetFile(path) as file:
        return schema_from_arrow(file.schema_arrow, _columns_with_nulls(file))


def arrow_file_schema(path: Path) -> Schema:
    """The file's schema; a column may hold nulls here if it does in the file's first batch."""
    with _opening(path, QueryError), pa.memory_map(str(path)) as memory:
        stored, batches = _arrow_batches(memory)
        first = next(batches, None)
        if first is None:
            return schema_from_arrow(stored)
        return schema_from_arrow(stored, [name for name in stored.names if first.column(name).null_count])


def parquet_rows(path: Path) -> int:
    """How many rows a Parquet file has."""
    return (_groups(path) or ((0, 0),))[-1][0]


def parquet_bytes(path: Path) -> int:
    """How much data a Parquet file has, decompressed."""
    return sum(size for _, size in _groups(path))


def near_row_group(path: Path, begin: int, place: int) -> int:
    """Where a part from row ``begin`` ends that is to end at ``place`` at the latest: with a row group, so
    that the next part need not decode it again, unless this one would be less than half as long."""
    ends = [end for end, _ in _groups(path) if begin + (place - begin) // 2 < end <= place]
    return ends[-1] if ends else place


def arrow_rows(path: Path) -> int:
    """How many rows an Arrow IPC file has."""
    with _opening(path), pa.memory_map(str(path)) as memory:
        return sum(batch.num_rows for batch in _arrow_batches(memory, count_only=True)[1])


def _between(
    batches: Iterator[pa.RecordBatch], first: int, start: int, stop: int | None
) -> Iterator[pa.RecordBatch]:
    """Of batches, the first of which begins at row ``first``, the rows of a part."""
    for batch in batches:
        if stop is not None and first >= stop:
            return
        skipped = max(0, start - first)
        wanted = batch.num_rows if stop is None else min(batch.num_rows, stop - first)
        if skipped < wanted:
            yield batch.slice(skipped, wanted - skipped)
        first += batch.num_rows


@lru_cache(4)
def _groups_of(path: Path, changed_ns: int) -> tuple[tuple[int, int], ...]:
    """Where each row group of a file ends, and how much data it has."""
    with _opening(path), pq.ParquetFile(path) as file:
        metadata = file.metadata
        sizes = [metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)]
        return tuple(zip(_group_ends(file), sizes, strict=True))


def _groups(path: Path) -> tuple[tuple[int, int], ...]:
    with _opening(path):
        return _groups_of(path, path.stat().st_mtime_ns)


def _group_ends(file: pq.ParquetFile) -> list[int]:
    metadata = file.metadata
    return list(accumulate(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)))


def _parsed(batch: pa.RecordBatch, schema: Schema, layout: Layout, strings: StringPool) -> Parsed:
    present = Schema(f for f in schema if f.name in batch.schema.names)
    arrays = {f.name: batch.column(f.name) for f in present}
    result = decode(arrays, batch.num_rows, present, layout, strings)
    bad = [
        BadLine(row, row, str(batch.slice(row, 1).to_pylist()[0]), reason) for row, reason in result.rejected
    ]
    return Parsed(result.columns, result.count, batch.num_rows, batch.num_rows, bad)


def _check(stored: pa.Schema, schema: Schema, path: Path) -> None:
    for field in schema:
        place = stored.get_field_index(field.name)
        if place < 0:
            raise RunError(
                f"column '{field.name}' is missing: file '{path}' has {', '.join(stored.names)}; "
                f"leave it out of schema=, or mend the file"
            )
        kind = stored.field(place).type
        if not type_fits(kind, field):
            raise RunError(
                f"column '{field.name}' has another type: file '{path}' has {kind}, "
                f"the source has {field.dtype}"
            )


def _columns_with_nulls(file: pq.ParquetFile) -> set[str]:
    """The columns that hold nulls, or may, for want of statistics."""
    declared = {field.name for field in file.schema_arrow if field.nullable}
    found: set[str] = set()
    metadata = file.metadata
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            statistics: Any = column.statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                found.add(column.path_in_schema.split(".")[0])
    return declared & found


def _arrow_batches(
    memory: pa.MemoryMappedFile, *, count_only: bool = False
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The file's schema and its batches; to count rows, one column of them is enough."""
    options = pa.ipc.IpcReadOptions(included_fields=[0]) if count_only else None
    try:
        file = pa.ipc.open_file(memory, options=options)
    except pa.ArrowInvalid:
        memory.seek(0)
        stream = pa.ipc.open_stream(memory, options=options)
        return stream.schema, iter(stream)
    return file.schema, (file.get_batch(number) for number in range(file.num_record_batches))


class _opening:  # noqa: N801 - reads as a statement
    """Turns whatever Arrow says about a broken file into an error that names the file."""

    def __init__(self, path: Path, error: type[Exception] = RunError) -> None:
        self._path, self._error = path, error

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, pa.ArrowException | OSError):
            raise self._error(f"cannot read file '{self._path}': {error}") from error
