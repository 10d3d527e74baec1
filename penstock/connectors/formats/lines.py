"""Records that are lines of text: cutting bytes into lines, and lines into events and bad records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.connectors.formats.values import decode
from penstock.memory.arrow import ArrowArray
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.types import Schema

#: A longer line is a bad record.
LINE_BYTES = 1 << 20
_LINE_END = ord("\n")
TOO_LONG = f"the line is longer than {LINE_BYTES:,} bytes"


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no event: its number among the chunk's records and among its lines, and why."""

    record: int
    line: int
    text: str
    reason: str


@dataclass
class Parsed:
    """The events of a chunk in the layout's visible columns, and its bad lines. Empty lines do not count."""

    columns: Columns
    count: int
    records: int
    lines: int
    bad: list[BadLine] = field(default_factory=list)


class LineParser(ABC):
    """Parses whole lines: a chunk of regular ones in a fast way, single ones in a slow way.

    The slow way, ``row``, defines what a line means. The fast way may refuse a chunk, as it does unless a
    subclass has one, but must never see it differently: else a result would depend on where chunks are cut.
    """

    def __init__(self, schema: Schema, layout: Layout, strings: StringPool) -> None:
        self.schema = schema
        self._layout = layout
        self._strings = strings

    def fast(self, chunk: bytes, lines: int) -> dict[str, ArrowArray] | None:
        """The columns of a chunk in which every line is a regular record; None if it cannot tell."""
        return None

    @abstractmethod
    def row(self, line: str) -> Sequence[Any]:
        """The values of one line as texts, in schema order, None for a null; ``ValueError`` with a reason if
        it is none. Texts are then parsed as the schema's types."""

    def arrays(self, columns: Sequence[Sequence[Any]]) -> dict[str, ArrowArray]:
        """Columns of what ``row`` returned; where this is overridden, that need not be texts."""
        return {
            name: pa.array(column, pa.string())
            for name, column in zip(self.schema.names, columns, strict=True)
        }

    def is_blank(self, line: bytes) -> bool:
        """Whether a line is no record, neither good nor bad."""
        return not line

    def parse(self, chunk: bytes) -> Parsed:
        """Parses a chunk of whole lines, each ended by a newline."""
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n")
        lines = count_lines(chunk)
        if len(chunk) <= LINE_BYTES and _is_utf8(chunk):
            arrays = self.fast(chunk, lines)
            if arrays is not None:
                result = decode(arrays, lines, self.schema, self._layout, self._strings)
                parsed = Parsed(result.columns, result.count, lines, lines)
                if result.rejected:
                    texts = chunk.split(b"\n")
                    for number, reason in result.rejected:
                        parsed.bad.append(BadLine(number, number, texts[number].decode(), reason))
                return parsed
        return self._parse_lines(chunk.split(b"\n")[:-1])

    def _parse_lines(self, lines: list[bytes]) -> Parsed:
        rows: list[Sequence[Any]] = []
        places: list[tuple[int, int]] = []  # record and line number of each row
        bad: list[BadLine] = []
        records = 0
        for number, line in enumerate(lines):
            if self.is_blank(line):
                continue
            try:
                if len(line) > LINE_BYTES:
                    raise ValueError(TOO_LONG)
                rows.append(self.row(_text(line)))
                places.append((records, number))
            except ValueError as error:
                bad.append(BadLine(records, number, line[:8_000].decode(errors="replace"), str(error)))
            records += 1
        columns = list(zip(*rows, strict=True)) if rows else [() for _ in self.schema]
        result = decode(self.arrays(columns), len(rows), self.schema, self._layout, self._strings)
        for row, reason in result.rejected:
            record, number = places[row]
            bad.append(BadLine(record, number, lines[number].decode(), reason))
        bad.sort(key=lambda entry: entry.record)
        return Parsed(result.columns, result.count, records, len(lines), bad)


class LineBuffer:
    """Collects bytes and gives out whole lines. Of a line that is too long it keeps just enough to tell."""

    def __init__(self) -> None:
        self._whole: list[bytes] = []
        self._rest = b""
        self.lines = 0  # whole lines that ``take`` would return
        self.size = 0  # their bytes

    def feed(self, data: bytes) -> None:
        cut = data.rfind(b"\n") + 1
        if cut:
            whole = self._rest + data[:cut]
            self._whole.append(whole)
            self.lines += count_lines(whole)
            self.size += len(whole)
            self._rest = data[cut:]
        else:
            self._rest += data
        if len(self._rest) > LINE_BYTES:
            self._rest = self._rest[: LINE_BYTES + 1]

    def take(self) -> bytes:
        """All whole lines so far."""
        whole, self._whole, self.lines, self.size = b"".join(self._whole), [], 0, 0
        return whole

    def end(self) -> bytes:
        """What came after the last newline."""
        rest, self._rest = self._rest, b""
        return rest


def count_lines(data: bytes) -> int:
    """How many line ends there are; ``bytes.count`` takes ten times as long."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _LINE_END))


def as_file(data: bytes) -> Any:
    """Bytes as Arrow's readers take them; its type stubs do not know that they do."""
    return pa.BufferReader(data)


def _is_utf8(chunk: bytes) -> bool:
    try:
        chunk.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"the line is not UTF-8: byte {error.start} is {line[error.start]:#04x}") from None
