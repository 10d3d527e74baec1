"""What the node runtime asks of a sink: a writer that takes results batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod

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


class NodeSink(Sink):
    """A sink that the node runtime can open."""

    @abstractmethod
    def open(self, schema: Schema) -> Writer:
        """A writer for rows of this schema. Raises ``RunError`` where the output cannot be written."""
