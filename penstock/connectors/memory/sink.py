"""Results kept in memory."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer
from penstock.memory.arrow import arrow_schema
from penstock.query.errors import RunError
from penstock.query.extras import Extra, needed
from penstock.query.types import Schema

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Memory(NodeSink):
    """Keeps every row; can be read at any time, also by another thread while the run goes on.

    A new run starts empty. A run on Spark that goes on from a checkpoint keeps the rows that this object has
    of the batches before.
    """

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._by_number: dict[int, list[pa.RecordBatch]] = {}  # of runs that have numbered batches
        self._schema: pa.Schema | None = None
        self._is_open = False
        self._lock = Lock()

    @property
    def guarantee(self) -> str:
        return "rows live as long as the process; a restart begins with none"

    @property
    def batch_guarantee(self) -> str:
        return "exactly once while the process lives; a restart of it begins with none"

    def open(self, schema: Schema) -> Writer:
        with self._lock:
            self._take()
            self._schema = arrow_schema(schema)
            self._batches, self._by_number = [], {}
        return _MemoryWriter(self)

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        with self._lock:
            self._take()
        return _MemoryBatches(self, arrow_schema(schema), 0 if resumed is None else resumed.batch)

    def table(self) -> pa.Table:
        """All rows so far, as an Arrow table."""
        with self._lock:
            if self._schema is None:
                return pa.table({})
            return pa.Table.from_batches(self._all(), self._schema)

    def to_arrow(self) -> pa.Table:
        """All rows so far, as an Arrow table: another word for ``table``."""
        return self.table()

    def to_pandas(self) -> pd.DataFrame:
        """All rows so far, as a pandas data frame. Times are aware, in UTC."""
        with needed(Extra.FRAMES, "Memory.to_pandas", "take to_arrow()"):
            import pandas as pd  # noqa: F401 - which pyarrow would only miss in its own words
        return self.table().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """All rows so far, as a Polars data frame. Times are aware, in UTC."""
        with needed(Extra.FRAMES, "Memory.to_polars", "take to_arrow()"):
            import polars as pl
        frame = pl.from_arrow(self.table())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def rows(self) -> list[dict[str, Any]]:
        """All rows so far, as dicts; timestamps are integers, in microseconds since 1970."""
        return plain_rows(self.table())

    def __len__(self) -> int:
        with self._lock:
            return sum(batch.num_rows for batch in self._all())

    def _take(self) -> None:
        if self._is_open:
            raise RunError("a Memory sink is in use already: give every sink step a Memory() of its own")
        self._is_open = True

    def _all(self) -> list[pa.RecordBatch]:
        return [*self._batches, *chain.from_iterable(self._by_number.values())]

    def _begin(self, schema: pa.Schema, counted: int) -> None:
        with self._lock:
            if self._schema != schema:
                counted = 0
            self._schema, self._batches = schema, []
            self._by_number = {
                number: batches for number, batches in self._by_number.items() if number < counted
            }

    def _replace(self, number: int, batches: list[pa.RecordBatch]) -> None:
        with self._lock:
            self._by_number[number] = batches

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


class _MemoryBatches(BatchWriter):
    def __init__(self, sink: Memory, schema: pa.Schema, counted: int) -> None:
        self._sink, self._schema, self._counted = sink, schema, counted

    def begin(self) -> None:
        self._sink._begin(self._schema, self._counted)

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        self._sink._replace(batch_id, rows.to_batches())

    def delivered(self) -> Mapping[str, Any]:
        return {"kind": "memory"}

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
