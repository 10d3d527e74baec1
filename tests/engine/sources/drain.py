"""Reads a source to its end in cuts of any size, without an engine."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import Any

from penstock.engine.sinks.memory import plain_rows
from penstock.engine.sources.reader import NodeSource, Reader
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
