"""Results counted and thrown away."""

from __future__ import annotations

import pyarrow as pa

from penstock.engine.sinks.base import NodeSink, Writer
from penstock.memory.layout import Columns, Layout
from penstock.query.types import Schema


class Discard(NodeSink):
    """Counts rows and keeps none: for benchmarks. A new run counts from 0."""

    def __init__(self) -> None:
        self.count = 0

    @property
    def guarantee(self) -> str:
        return "nothing is kept"

    def open(self, schema: Schema) -> Writer:
        self.count = 0
        return _DiscardWriter(self)


class _DiscardWriter(Writer):
    takes_columns = True

    def __init__(self, sink: Discard) -> None:
        self._sink = sink

    def write(self, batch: pa.RecordBatch) -> None:
        self._sink.count += batch.num_rows

    def write_columns(self, columns: Columns, start: int, stop: int, layout: Layout) -> None:
        self._sink.count += stop - start
