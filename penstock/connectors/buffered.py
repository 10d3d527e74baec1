"""A reader that decodes a batch at a time and hands it out in slices."""

from __future__ import annotations

from abc import abstractmethod

from penstock.connectors.reader import BadRecord, Reader, Resume, visible_arrays
from penstock.memory.layout import Columns, Layout


class BufferedReader(Reader):
    """Holds one decoded batch; subclasses say where the next one comes from.

    The buffer has the arrays of the layout's visible columns only, in the layout's order.
    """

    def __init__(self, layout: Layout, partition: int = 0, resume: Resume | None = None) -> None:
        super().__init__(partition)
        if resume is not None:
            self.offset = resume.offset
        self._records = 0 if resume is None else resume.records  # records before the next batch
        self._places = visible_arrays(layout)
        self._buffer: Columns = ()
        self._position = 0
        self._buffered = 0  # events in the buffer, read or not
        self._bad: list[BadRecord] = []

    @abstractmethod
    def refill(self) -> None:
        """Decodes the next batch, if there is one, and gives it to ``hold``. Called with an empty buffer."""

    def hold(self, columns: Columns, count: int, records: int = 0) -> None:
        """Makes these events the buffer; they came from so many records, good and bad."""
        self._records += records
        self._buffer, self._position, self._buffered = columns, 0, count

    @property
    def records(self) -> int:
        return self._records

    def reject(self, record_number: int, record: str, reason: str) -> None:
        """Keeps a bad record."""
        self._bad.append(BadRecord.of(self.partition, record_number, record, reason))

    @property
    def buffered(self) -> int:
        """Events decoded and not yet read."""
        return self._buffered - self._position

    def read(self, columns: Columns, start: int, limit: int) -> int:
        if self.buffered == 0:
            self.refill()
        position = self._position
        count = min(limit, self._buffered - position)
        if count <= 0:
            return 0
        for place, source in zip(self._places, self._buffer, strict=True):
            columns[place][start : start + count] = source[position : position + count]
        self._position = position + count
        self.offset += count
        return count

    def take_bad(self) -> list[BadRecord]:
        bad, self._bad = self._bad, []
        return bad
