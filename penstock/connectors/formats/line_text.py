"""Rows as lines of text."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa
import pyarrow.compute as pc


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
