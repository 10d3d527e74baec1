"""The sink of a run with epochs: rows go out at once where the sink wants that, else with their epoch."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.connectors.writer import BatchWriter
from penstock.engine.turns.sink import SinkOperator
from penstock.memory.arrow import batch_from_columns
from penstock.memory.layout import Columns
from penstock.operators.run.base import Build

#: What a sink may hold of an epoch before the next one is to begin early.
HELD_BYTES = 64 << 20


class EpochSink(SinkOperator):
    """Holds the rows of an epoch until its mark comes. Whoever commits hands them to the writer."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        self.at_once = self._sink.at_once
        self.epoch = 0  # to which what it gets belongs
        self.rows: list[pa.RecordBatch] = []
        self.written = 0  # rows since the run began
        self.on_much: Callable[[], None] = lambda: None
        self._held_bytes = 0
        self.batches: BatchWriter | None = None  # of a sink that wants its rows at once

    def open(self) -> None:
        """Who commits has opened it."""

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        batch = batch_from_columns(columns, start, stop, self.inputs[0], self.strings)
        if self.at_once:
            assert self.batches is not None
            self.batches.write_batch(self.epoch, pa.Table.from_batches([batch]))
        else:
            self.rows.append(batch)
            self._held_bytes += batch.nbytes
            if self._held_bytes > HELD_BYTES:
                self.on_much()
        self.written += stop - start
        return stop - start

    def take(self) -> list[pa.RecordBatch]:
        """The rows of the epoch that ends now."""
        rows, self.rows, self._held_bytes = self.rows, [], 0
        self.epoch += 1
        return rows
