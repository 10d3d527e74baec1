"""Formats in which a record is a line of text; sources of lines and of messages take them too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.files.decoding import Piece
from penstock.connectors.files.parts import FilePart
from penstock.connectors.formats.format import Format
from penstock.connectors.formats.line_files import bytes_per_line, chunks, line_end, lines_before
from penstock.connectors.formats.lines import LineParser, Parsed
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.types import Schema


@dataclass(frozen=True)
class LineFormat(Format, abstract=True):
    """A line is a record. A subclass says how a line is read and, if it is, written."""

    record = "line"

    @abstractmethod
    def parser(self, schema: Schema, layout: Layout, strings: StringPool) -> LineParser:
        """What makes events of lines without a header."""

    def text(self, schema: Schema) -> LineText:
        """What makes lines of rows."""
        raise QueryError(f"format '{self.name}' can only be read", hint="write text() for it")

    def batches(
        self, part: FilePart, schema: Schema, layout: Layout, strings: StringPool
    ) -> Iterator[Parsed]:
        for piece in self.pieces(part, schema, layout, strings):
            yield piece()

    def pieces(
        self, part: FilePart, schema: Schema, layout: Layout, strings: StringPool
    ) -> Iterator[Piece[Parsed]]:
        parser = self.parser(schema, layout, strings)
        for chunk in chunks(part.path, part.start, part.stop):
            yield partial(parser.parse, chunk)

    def units_in(self, path: Path) -> int:
        return path.stat().st_size

    def cut(self, path: Path, begin: int, place: int) -> int | None:
        return line_end(path, place)

    def records_before(self, part: FilePart) -> int:
        return lines_before(part.path, part.start)

    def units_per_event(self, path: Path) -> float:
        return bytes_per_line(path)


class LineText(ABC):
    """How a format spells rows of one schema."""

    @property
    def header(self) -> bytes:
        """What a file begins with."""
        return b""

    @property
    def beginning(self) -> bytes:
        """What a file with rows surely begins with.

        By it a run knows the rows of a first batch that did not count as its own. Where there is none, a
        run that failed in its first batch is refused rather than the file cut.
        """
        return self.header

    @abstractmethod
    def lines(self, batch: pa.RecordBatch) -> bytes:
        """A line per row, each with its line end."""


def times_as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with its timestamps as ISO 8601 text in UTC, such as ``2026-01-31T08:00:00.250000Z``."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type):
            text = pc.strftime(batch.column(place), format="%Y-%m-%dT%H:%M:%SZ")
            batch = batch.set_column(place, field.with_type(pa.string()), text)
    return batch
