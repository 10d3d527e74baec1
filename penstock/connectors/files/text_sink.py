"""Sinks that write text: how they spell values, and the one file that a node run writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.files.paths import prepare_file
from penstock.connectors.files.target_lock import TargetLock
from penstock.connectors.writer import Writer


class TextFormat(ABC):
    """Rows as lines of text."""

    @property
    def header(self) -> bytes:
        """What a file begins with."""
        return b""

    @property
    def beginning(self) -> bytes:
        """What a file with rows surely begins with."""
        return self.header

    @abstractmethod
    def lines(self, batch: pa.RecordBatch) -> bytes:
        """A line per row, each with its line end."""


class TextFileWriter(Writer):
    """Writes a file from its beginning, rows as they come."""

    def __init__(self, path: Path, text: TextFormat, overwrite: bool) -> None:
        self._lock = TargetLock(path)
        try:
            prepare_file(path, overwrite)
            self._file = path.open("wb")
            self._lock.take()
        except BaseException:
            self._lock.free()
            raise
        self._text = text
        self._add(text.header)

    def write(self, batch: pa.RecordBatch) -> None:
        self._add(self._text.lines(batch))

    def close(self, complete: bool) -> None:
        self._file.close()
        self._lock.free()

    def _add(self, lines: bytes) -> None:
        self._file.write(lines)
        self._file.flush()


def times_as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with its timestamps as ISO 8601 text in UTC, such as ``2026-01-31T08:00:00.250000Z``."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type):
            text = pc.strftime(batch.column(place), format="%Y-%m-%dT%H:%M:%SZ")
            batch = batch.set_column(place, field.with_type(pa.string()), text)
    return batch
