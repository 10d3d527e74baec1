"""Results kept in memory."""

from __future__ import annotations

from threading import Lock
from typing import Any

import pyarrow as pa

from penstock.engine.sinks.base import NodeSink, Writer
from penstock.memory.arrow import arrow_schema
from penstock.query.errors import RunError
from penstock.query.types import Schema


class Memory(NodeSink):
    """Keeps every row; can be read at any time, also by another thread while the run goes on.

    A new run starts empty.
    """

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._schema: pa.Schema | None = None
        self._is_open = False
        self._lock = Lock()

    @property
    def guarantee(self) -> str:
        return "rows live as long as the process; a restart begins with none"

    def open(self, schema: Schema) -> Writer:
        with self._lock:
            if self._is_open:
                raise RunError("a Memory sink is in use already: give every sink step a Memory() of its own")
            self._is_open = True
            self._schema = arrow_schema(schema)
            self._batches = []
        return _MemoryWriter(self)

    def table(self) -> pa.Table:
        """All rows so far, as an Arrow table."""
        with self._lock:
            if self._schema is None:
                return pa.table({})
            return pa.Table.from_batches(self._batches, self._schema)

    def rows(self) -> list[dict[str, Any]]:
        """All rows so far, as dicts; timestamps are integers, in microseconds since 1970."""
        return plain_rows(self.table())

    def __len__(self) -> int:
        with self._lock:
            return sum(batch.num_rows for batch in self._batches)

    def _append(self, batch: pa.RecordBatch) -> None:
        with self._lock:
            self._batches.append(batch)

    def _close(self) -> None:
        with self._lock:
            self._is_open = False


class _MemoryWriter(Writer):
    def __init__(self, sink: Memory) -> None:
        self._sink = sink

    def write(self, batch: pa.RecordBatch) -> None:
        self._sink._append(batch)

    def close(self, complete: bool) -> None:
        self._sink._close()


def plain_rows(data: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as dicts of Python values, timestamps as integer microseconds."""
    fields = [
        pa.field(field.name, pa.int64()) if pa.types.is_timestamp(field.type) else field
        for field in data.schema
    ]
    rows: list[dict[str, Any]] = data.cast(pa.schema(fields)).to_pylist()
    return rows
