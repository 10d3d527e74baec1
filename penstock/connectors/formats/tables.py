"""Formats of files that hold a table, whose rows are counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from penstock.connectors.files.parts import FilePart
from penstock.connectors.formats.format import Format
from penstock.connectors.formats.lines import BadLine, Parsed
from penstock.connectors.formats.values import decode
from penstock.memory.arrow import type_fits
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema

#: As many rows of a file are decoded at a time.
BATCH_ROWS = 65_536


class TableFile(Protocol):
    """A file that is being written."""

    def write_table(self, table: pa.Table) -> None:
        """Adds a group of rows."""

    def close(self) -> None:
        """Makes it whole."""


@dataclass(frozen=True)
class TableFormat(Format, abstract=True):
    """A file is a table, whole when it is closed. A subclass says how it is read and, if it is, written."""

    record = "row"

    @property
    def no_schema(self) -> str | None:
        return None

    def create(self, path: Path, schema: pa.Schema) -> TableFile:
        """Begins a file."""
        raise QueryError(f"format '{self.name}' can only be read", hint="write create() for it")

    def cut(self, path: Path, begin: int, place: int) -> int | None:
        return place

    def records_before(self, part: FilePart) -> int:
        return part.start


def between(
    batches: Iterator[pa.RecordBatch], first: int, start: int, stop: int | None
) -> Iterator[pa.RecordBatch]:
    """Of batches, the first of which begins at row ``first``, the rows of a part."""
    for batch in batches:
        if stop is not None and first >= stop:
            return
        skipped = max(0, start - first)
        wanted = batch.num_rows if stop is None else min(batch.num_rows, stop - first)
        if skipped < wanted:
            yield batch.slice(skipped, wanted - skipped)
        first += batch.num_rows


def parsed(batch: pa.RecordBatch, schema: Schema, layout: Layout, strings: StringPool) -> Parsed:
    """The events of a batch, and its bad rows."""
    present = Schema(f for f in schema if f.name in batch.schema.names)
    arrays = {f.name: batch.column(f.name) for f in present}
    result = decode(arrays, batch.num_rows, present, layout, strings)
    bad = [
        BadLine(row, row, str(batch.slice(row, 1).to_pylist()[0]), reason) for row, reason in result.rejected
    ]
    return Parsed(result.columns, result.count, batch.num_rows, batch.num_rows, bad)


def check_columns(stored: pa.Schema, schema: Schema, path: Path) -> None:
    """Raises unless a file has all columns, with types that fit."""
    for field in schema:
        place = stored.get_field_index(field.name)
        if place < 0:
            raise RunError(
                f"column '{field.name}' is missing: file '{path}' has {', '.join(stored.names)}; "
                f"leave it out of schema=, or mend the file"
            )
        kind = stored.field(place).type
        if not type_fits(kind, field):
            raise RunError(
                f"column '{field.name}' has another type: file '{path}' has {kind}, "
                f"the source has {field.dtype}"
            )


class opening:  # noqa: N801 - reads as a statement
    """Turns whatever Arrow says about a broken file into an error that names the file."""

    def __init__(self, path: Path, error: type[Exception] = RunError) -> None:
        self._path, self._error = path, error

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, pa.ArrowException | OSError):
            raise self._error(f"cannot read file '{self._path}': {error}") from error
