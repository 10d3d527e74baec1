"""Formats of files that hold a table, whose rows are counted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.connectors.files.parts import FilePart
from penstock.connectors.formats.format import Format


@dataclass(frozen=True)
class TableFormat(Format, abstract=True):
    """A file is a table that is whole when it is closed. A subclass says how a file is read."""

    record = "row"

    @property
    def no_schema(self) -> str | None:
        return None

    def cut(self, path: Path, begin: int, place: int) -> int | None:
        return place

    def records_before(self, part: FilePart) -> int:
        return part.start
