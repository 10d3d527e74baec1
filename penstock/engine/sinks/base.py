"""What the runtimes ask of a sink: a writer that takes results as they come, or batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from penstock.memory.layout import Columns, Layout
from penstock.query.connectors import Sink
from penstock.query.types import Schema


class Writer(ABC):
    """An opened sink; used by one thread at a time. Whatever it raises stops the run."""

    #: Whether the runtime should call ``write_columns`` instead of ``write``, and so spare the conversion to
    #: Arrow.
    takes_columns: bool = False

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Takes rows: the visible columns in schema order, timestamps as ``timestamp('us', tz='UTC')``."""

    def write_columns(self, columns: Columns, start: int, stop: int, layout: Layout) -> None:
        """Takes the rows [start, stop) of a block. The arrays are valid during the call only."""
        raise NotImplementedError(f"{type(self).__name__} takes Arrow batches")

    def close(self, complete: bool) -> None:  # noqa: B027 - some writers hold nothing
        """No more rows come. Without ``complete`` the run was stopped early; the rows written so far are
        right.
        """


class BatchWriter(ABC):
    """An opened sink that takes results batch by batch, each with its number; used by one thread at a time.

    Whatever it raises stops the run, and the batch does not count.
    """

    #: Whether its batches may be written while other sinks write theirs, by a thread other than the driver's:
    #: for writers that mostly wait for a disk and call no code of the user.
    side_by_side: bool = False

    @abstractmethod
    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        """Takes all rows that a batch has for this sink; not called for a batch that has none.

        Numbers grow, with gaps. The same number comes again if the run failed before the batch counted: the
        second call then replaces the first where the sink can.
        """

    def close(self, complete: bool) -> None:  # noqa: B027 - some writers hold nothing
        """No more batches come. Without ``complete`` the run was stopped early or failed."""


class NodeSink(Sink):
    """A sink that the node runtime can open, and, batch by batch, the Spark runtime on its driver."""

    @abstractmethod
    def open(self, schema: Schema) -> Writer:
        """A writer for rows of this schema. Raises ``RunError`` where the output cannot be written."""

    def open_batches(self, schema: Schema, resumed_from: int | None) -> BatchWriter:
        """A writer for batches of rows of this schema.

        ``resumed_from`` is the number of the first batch that has not counted yet, and so the first that may
        come; what a sink holds of it or of later ones is of a run that failed, and is removed where the sink
        can. None is a new run, which must not touch output that it was not told to overwrite. 0 is a run
        that failed in its very first batch: only rows of batch 0 can be there.

        Unless a sink does better, every record batch goes to what ``open`` returns.
        """
        return _EachBatch(self.open(schema))

    @property
    def batch_guarantee(self) -> str:
        """What it promises on Spark after a failure and a restart, in a sentence."""
        return "at least once: rows of the batch in which the run failed may come twice"


class _EachBatch(BatchWriter):
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            self._writer.write(batch)

    def close(self, complete: bool) -> None:
        self._writer.close(complete)


def whole_batch(rows: pa.Table) -> pa.RecordBatch:
    """A batch's rows in one piece, for sinks that show or hand over a batch at a time."""
    if rows.num_columns == 0:
        empty: Any = pa.array([{}] * rows.num_rows, pa.struct([]))
        return pa.RecordBatch.from_struct_array(empty)
    arrays = [column.combine_chunks() for column in rows.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)
