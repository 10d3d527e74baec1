"""Arrow IPC files (Feather), in the file or the stream format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

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


@dataclass(frozen=True)
class ArrowFormat(TableFormat):
    """Arrow IPC, mapped into memory and read a batch at a time."""

    name = "arrow"
    endings = (".arrow", ".feather", ".ipc")

    def infer(self, path: Path) -> Schema:
        """A column may hold nulls if it does in the file's first batch."""
        with opening(path, QueryError), pa.memory_map(str(path)) as memory:
            stored, batches = _stored(memory)
            first = next(batches, None)
            if first is None:
                return schema_from_arrow(stored)
            return schema_from_arrow(stored, [name for name in stored.names if first.column(name).null_count])

    def batches(
        self, part: FilePart, schema: Schema, layout: Layout, strings: StringPool
    ) -> Iterator[Parsed]:
        path = part.path
        with opening(path), pa.memory_map(str(path)) as memory:
            stored, batches = _stored(memory)
            check_columns(stored, schema, path)
            for batch in between(batches, 0, part.start, part.stop):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield parsed(batch.slice(start, BATCH_ROWS), schema, layout, strings)

    def units_in(self, path: Path) -> int:
        with opening(path), pa.memory_map(str(path)) as memory:
            return sum(batch.num_rows for batch in _stored(memory, count_only=True)[1])

    def create(self, path: Path, schema: pa.Schema) -> TableFile:
        return _ArrowFile(path, schema)


class _ArrowFile:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._file, schema)

    def write_table(self, table: pa.Table) -> None:
        self._writer.write_table(table.combine_chunks())

    def close(self) -> None:
        self._writer.close()
        self._file.close()


def _stored(
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
