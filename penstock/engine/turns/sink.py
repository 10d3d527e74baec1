"""The sink operator: hands events over to where results go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.memory.arrow import batch_from_columns
from penstock.memory.layout import Columns
from penstock.operators.run.base import Build, Operator
from penstock.query.steps import SinkSpec

if TYPE_CHECKING:
    from penstock.connectors.writer import NodeSink, Writer


class SinkOperator(Operator):
    """Writes every event once, in the order of its input."""

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec_as(SinkSpec)
        self._sink: NodeSink = spec.sink  # type: ignore[assignment]
        self._writer: Writer | None = None

    def open(self) -> None:
        """Opens the sink; called once, before the first turn."""
        self._writer = self._sink.open(self.node.schema)
        self._by_columns = self._writer.takes_columns

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        assert self._writer is not None
        layout = self.inputs[0]
        if self._by_columns:
            self._writer.write_columns(columns, start, stop, layout)
        else:
            self._writer.write(batch_from_columns(columns, start, stop, layout, self.strings))
        return stop - start

    def on_end(self, complete: bool) -> None:
        self.close(complete)

    def close(self, complete: bool) -> None:
        """Ends the writing; a second call does nothing."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close(complete)
