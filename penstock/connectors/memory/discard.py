"""Results counted and thrown away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer
from penstock.memory.layout import Columns, Layout
from penstock.query.types import Schema


class Discard(NodeSink):
    """Counts rows and keeps none: for benchmarks. A new run counts from 0."""

    def __init__(self) -> None:
        self.count = 0

    @property
    def guarantee(self) -> str:
        return "nothing is kept"

    @property
    def batch_guarantee(self) -> str:
        return self.guarantee

    def open(self, schema: Schema) -> Writer:
        self.count = 0
        return _DiscardWriter(self)

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        return _DiscardBatches(self)


class _DiscardWriter(Writer):
    takes_columns = True

    def __init__(self, sink: Discard) -> None:
        self._sink = sink

    def write(self, batch: pa.RecordBatch) -> None:
        self._sink.count += batch.num_rows

    def write_columns(self, columns: Columns, start: int, stop: int, layout: Layout) -> None:
        self._sink.count += stop - start


class _DiscardBatches(BatchWriter):
    def __init__(self, sink: Discard) -> None:
        self._sink = sink
        self._newest = (-1, 0)  # the last batch and its rows, which are not counted twice

    def begin(self) -> None:
        self._sink.count = 0

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        if self._newest[0] == batch_id:
            self._sink.count -= self._newest[1]
        self._newest = (batch_id, rows.num_rows)
        self._sink.count += rows.num_rows

    def delivered(self) -> Mapping[str, Any]:
        return {"kind": "discard"}
