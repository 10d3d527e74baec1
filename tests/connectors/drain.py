"""Reads a source to its end in cuts of any size, without an engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

from penstock.connectors.memory.sink import plain_rows
from penstock.connectors.reader import BadRecord, NodeSource, Reader, Resume
from penstock.memory.arrow import batch_from_columns
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool

Row = dict[str, Any]


class Drain:
    """One opened partition and the rows read from it so far."""

    def __init__(self, source: NodeSource, names: Iterable[str] | None = None, partition: int = 0) -> None:
        wanted = source.schema.names if names is None else tuple(names)
        self.layout = Layout(field for field in source.schema if field.name in wanted)
        self.strings = StringPool()
        self.reader: Reader = source.open(self.layout, self.strings)[partition]
        self.rows: list[Row] = []

    def read(self, limit: int) -> int:
        """One call of ``read``, at an offset into the block that a real block would have."""
        columns = self.layout.allocate(limit + 3)
        before = self.reader.offset
        count = self.reader.read(columns, 3, limit)
        assert 0 <= count <= limit
        assert self.reader.offset == before + count
        self.rows += plain_rows(batch_from_columns(columns, 3, 3 + count, self.layout, self.strings))
        return count

    def to_end(self, cuts: Iterable[int] = (1000,), now_ns: int = 0) -> list[Row]:
        """All rows of a source that is not paced and does not wait."""
        for limit in cycle(cuts):
            available = self.reader.available(now_ns)
            if self.reader.finished:
                break
            assert available > 0
            self.read(limit)
        self.reader.close()
        return self.rows


def rows_of(source: NodeSource, cuts: Iterable[int] = (1000,)) -> list[Row]:
    """All rows of a source with one partition."""
    return Drain(source).to_end(cuts)


class RangeDrain:
    """Reads one partition range by range, each in a process of its own as far as the source can tell."""

    def __init__(
        self,
        source: NodeSource,
        journal: str | None = None,
        partition: int = 0,
        start: Sequence[int] | None = None,
    ) -> None:
        self.source, self.partition = source, partition
        self.positions = source.positions(journal, start)
        self.resume = Resume() if start is None else Resume(start[partition])
        self.layout = Layout(source.schema)
        self.rows: list[Row] = []
        self.bad: list[BadRecord] = []

    def read(self, end: int, cuts: Iterable[int] = (1000,)) -> Reader:
        """From where it is to this position."""
        strings = StringPool()
        hint = self.positions.describe(self.partition, self.resume.position, end)
        reader = self.source.open_range(self.partition, self.resume, end, self.layout, strings, hint)
        assert (reader.partition, reader.offset) == (self.partition, self.resume.offset)
        for limit in cycle(cuts):
            if reader.finished:
                break
            assert reader.available(0) > 0
            columns = self.layout.allocate(limit + 3)
            count = reader.read(columns, 3, limit)
            self.rows += plain_rows(batch_from_columns(columns, 3, 3 + count, self.layout, strings))
            self.bad += reader.take_bad()
        reader.close()
        self.resume = Resume(end, reader.offset, reader.records)
        return reader

    def to_end(self, limit: int | None = None, cuts: Iterable[int] = (1000,)) -> list[Row]:
        """All rows of a bounded source, in ranges of about ``limit`` events."""
        final = self.positions.final
        assert final is not None
        while self.resume.position < final[self.partition]:
            start = [
                end if number != self.partition else self.resume.position for number, end in enumerate(final)
            ]
            end = self.positions.latest(start, limit)[self.partition]
            assert end > self.resume.position
            self.read(end, cuts)
        return self.rows
