"""Formats of files that hold a table, whose rows are counted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from penstock.connectors.files.parts import FilePart
from penstock.connectors.formats.format import Format
from penstock.query.errors import QueryError


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
