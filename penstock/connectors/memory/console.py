"""Results printed as aligned text."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.connectors.formats.line_format import times_as_text
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer, whole_batch
from penstock.query.errors import QueryError
from penstock.query.types import Schema

_WIDEST = 60  # characters of a value that are shown


class Console(NodeSink):
    """Prints the first ``limit`` rows of every batch to standard output, and how many more there are."""

    at_once = True

    def __init__(self, limit: int = 20, *, title: str | None = None) -> None:
        if limit < 1:
            raise QueryError("limit must be positive", detail=f"Console got {limit}", hint="write e.g. 20")
        self._limit, self._title = limit, title

    @property
    def guarantee(self) -> str:
        return "rows are shown once, and again by a run that starts again"

    @property
    def batch_guarantee(self) -> str:
        return "at least once: rows of the batch in which the run failed are shown again"

    def open(self, schema: Schema) -> Writer:
        return _ConsoleWriter(schema, self._limit, self._title)

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        return _ConsoleBatches(_ConsoleWriter(schema, self._limit, self._title))


class _ConsoleWriter(Writer):
    def __init__(self, schema: Schema, limit: int, title: str | None) -> None:
        self._names = list(schema.names)
        self._to_right = [field.dtype.is_numeric for field in schema]
        self._limit, self._title = limit, title

    def write(self, batch: pa.RecordBatch) -> None:
        shown = times_as_text(batch.slice(0, self._limit))
        columns = [[_spelled(value) for value in column.to_pylist()] for column in shown.columns]
        widths = [max(map(len, [name, *texts])) for name, texts in zip(self._names, columns, strict=True)]
        lines = [] if self._title is None else [self._title]
        lines.append(self._line(self._names, widths))
        lines += (self._line(row, widths) for row in zip(*columns, strict=True))
        if batch.num_rows > self._limit:
            lines.append(f"… and {batch.num_rows - self._limit:,} more")
        # One write, so that the tables of two sinks do not run into each other.
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()

    def _line(self, texts: Any, widths: list[int]) -> str:
        aligned = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, self._to_right, strict=True)
        )
        return "  ".join(aligned).rstrip()


class _ConsoleBatches(BatchWriter):
    def __init__(self, writer: _ConsoleWriter) -> None:
        self._writer = writer

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        self._writer.write(whole_batch(rows))

    def delivered(self) -> Mapping[str, Any]:
        return {"kind": "console"}


def _spelled(value: Any) -> str:
    if value is None:
        return "null"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    text = "".join(sign if sign.isprintable() else "�" for sign in text)  # no control codes into a terminal
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
