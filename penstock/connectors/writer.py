"""What the runtimes ask of a sink: a writer that takes results as they come, or batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Resumed:
    """Where a run goes on, as a sink needs to know it."""

    #: The first batch that has not counted yet, and so the first that may come.
    batch: int
    #: What the sink said with the last manifest; None: the checkpoint does not know it.
    delivered: Mapping[str, Any] | None


class BatchWriter(ABC):
    """An opened sink that takes results batch by batch, each with its number; used by one thread at a time.

    Whatever it raises stops the run, and the batch does not count.
    """

    #: Whether its batches may be written while other sinks write theirs, by a thread other than the driver's:
    #: for writers that mostly wait for a disk and call no code of the user.
    side_by_side: bool = False

    def stage_in(self, folder: str) -> None:  # noqa: B027 - most keep nothing
        """A folder of its own beside the checkpoint, which lives as long; told before ``begin``, by a run
        that has one."""

    def begin(self) -> None:  # noqa: B027 - some writers prepare nothing
        """The checkpoint is this run's: from now on the output may be made, cut and removed.

        What the sink holds of batches that did not count is of a run that failed, and is removed where the
        sink can.
        """

    @abstractmethod
    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        """Takes all rows that a batch has for this sink; not called for a batch that has none.

        Numbers grow, with gaps. The same number comes again if the run failed before the batch counted, and
        then maybe with other rows: the second call replaces the first where the sink can.
        """

    def counted(self, batch_id: int) -> None:  # noqa: B027 - what is written at once is there
        """The manifest has this batch: it never comes again."""

    def end(self, batch_id: int) -> None:  # noqa: B027 - most outputs are whole at any time
        """The input is complete and ``batch_id`` is the last batch: what the output lacks is added, such as
        the header of a file that got no rows. Called before the batch counts.
        """

    def delivered(self) -> Mapping[str, Any]:
        """What is durably there, as plain JSON that does not grow; its ``kind`` says who understands it.

        It goes into the manifest with the batch, and comes back in ``Resumed`` when a run goes on. A sink
        that cannot look at its output again only says what it is.
        """
        return {"kind": type(self).__name__}

    def close(self, complete: bool) -> None:  # noqa: B027 - some writers hold nothing
        """No more batches come. Without ``complete`` the run was stopped early or failed. May be called
        without ``begin``, and then leaves everything as it is.
        """


class NodeSink(Sink):
    """A sink that the node runtime can open, and, batch by batch, the Spark runtime on its driver."""

    #: Whether a run with epochs hands rows over as they come, each with the number of its epoch, instead of
    #: all at its end. They cannot be taken back then.
    at_once: bool = False
    #: Whether only a Spark session can write it.
    needs_spark: bool = False

    @abstractmethod
    def open(self, schema: Schema) -> Writer:
        """A writer for rows of this schema. Raises ``RunError`` where the output cannot be written."""

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        """A writer for batches of rows of this schema; None is the first run of a checkpoint.

        Makes sure that what the sink has delivered is still there, that nothing is in the way and that
        nobody else writes it, and raises ``RunError`` if not. It touches nothing: that is for ``begin``,
        when it is known that no other run has the checkpoint. A run that is new, and a sink that is new to
        its checkpoint, must not touch output that it was not told to overwrite; a run that goes on never
        overwrites.

        Unless a sink does better, every record batch goes to what ``open`` returns.
        """
        return _EachBatch(lambda: self.open(schema), type(self).__name__)

    @property
    def batch_guarantee(self) -> str:
        """What it promises on Spark after a failure and a restart, in a sentence."""
        return "at least once: rows of the batch in which the run failed may come twice"


class _EachBatch(BatchWriter):
    def __init__(self, open_writer: Callable[[], Writer], kind: str) -> None:
        self._open, self._kind = open_writer, kind
        self._writer: Writer | None = None

    def begin(self) -> None:
        self._writer = self._open()  # which may make files, so not before

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        assert self._writer is not None
        for batch in rows.to_batches():
            self._writer.write(batch)

    def delivered(self) -> Mapping[str, Any]:
        return {"kind": self._kind}

    def close(self, complete: bool) -> None:
        if self._writer is not None:
            self._writer.close(complete)


def whole_batch(rows: pa.Table) -> pa.RecordBatch:
    """A batch's rows in one piece, for sinks that show or hand over a batch at a time."""
    if rows.num_columns == 0:
        empty: Any = pa.array([{}] * rows.num_rows, pa.struct([]))
        return pa.RecordBatch.from_struct_array(empty)
    arrays = [column.combine_chunks() for column in rows.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)
