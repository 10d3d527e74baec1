"""Records that are lines of text: cutting bytes into lines, and lines into events and bad records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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


@dataclass(frozen=True)
class RegularLines:
    """The columns of those lines of a chunk that a fast way took, and which lines these are: None for all.

    Columns of the schema that are not there have been checked, and nobody reads them.
    """

    arrays: Mapping[str, ArrowArray]
    lines: NDArray[np.int64] | None = None


class LineParser(ABC):
    """Parses whole lines: regular ones of a chunk in a fast way, the others one by one in a slow way.

    The slow way, ``row``, defines what a line means. The fast way may leave lines to it, as it does with all
    unless a subclass has one, but must never see a line differently: else a result would depend on where
    chunks are cut. Several threads may parse with one parser.
    """

    def __init__(self, schema: Schema, layout: Layout, strings: StringPool) -> None:
        self.schema = schema
        self._layout = layout
        self._strings = strings

    def fast(self, chunk: bytes, lines: int) -> RegularLines | None:
        """The columns of the lines that are regular records; None if it cannot tell. The chunk is UTF-8."""
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
        regular = self._regular(chunk, lines)
        if regular is None:
            return self._merged(lines, _LinesTaken(), self._one_by_one(chunk.split(b"\n")[:-1], range(lines)))
        rows = lines if regular.lines is None else len(regular.lines)
        schema = Schema(field for field in self.schema if field.name in regular.arrays)
        result = decode(regular.arrays, rows, schema, self._layout, self._strings)
        if rows == lines and not result.rejected:
            return Parsed(result.columns, result.count, lines, lines)
        ends = line_ends(chunk)
        numbers = np.arange(lines) if regular.lines is None else regular.lines
        bad = [(int(numbers[row]), _cut(chunk, ends, int(numbers[row])), why) for row, why in result.rejected]
        good = np.delete(numbers, [row for row, _ in result.rejected])
        others = np.setdiff1d(np.arange(lines), numbers, assume_unique=True).tolist()
        slow = self._one_by_one([_cut(chunk, ends, number) for number in others], others)
        return self._merged(lines, _LinesTaken(good, result.columns, bad), slow)

    def _regular(self, chunk: bytes, lines: int) -> RegularLines | None:
        """What the fast way takes. It is not shown lines that are too long or no UTF-8."""
        odd = np.zeros(lines, np.bool_)
        if not _is_utf8(chunk):
            odd = np.array([not _is_utf8(line) for line in chunk.split(b"\n")[:-1]])
        if len(chunk) > LINE_BYTES:
            odd |= np.diff(line_ends(chunk), prepend=-1) > LINE_BYTES
        if not odd.any():
            return self.fast(chunk, lines)
        numbers, rest = without(chunk, odd)
        regular = self.fast(rest, len(numbers))
        if regular is None:
            return None
        return RegularLines(regular.arrays, numbers if regular.lines is None else numbers[regular.lines])

    def _one_by_one(self, lines: Sequence[bytes], numbers: Sequence[int]) -> _LinesTaken:
        rows: list[Sequence[Any]] = []
        places: list[int] = []  # of each row among the lines
        bad: list[tuple[int, bytes, str]] = []
        blank: list[int] = []
        for place, line in enumerate(lines):
            if self.is_blank(line):
                blank.append(numbers[place])
                continue
            try:
                if len(line) > LINE_BYTES:
                    raise ValueError(TOO_LONG)
                rows.append(self.row(_text(line)))
                places.append(place)
            except ValueError as error:
                bad.append((numbers[place], line[:8_000], str(error)))
        if not rows:
            return _LinesTaken(bad=bad, blank=blank)
        columns = list(zip(*rows, strict=True))
        result = decode(self.arrays(columns), len(rows), self.schema, self._layout, self._strings)
        rejected = {row for row, _ in result.rejected}
        bad += [(numbers[places[row]], lines[places[row]], why) for row, why in result.rejected]
        good = [numbers[place] for row, place in enumerate(places) if row not in rejected]
        return _LinesTaken(np.array(good, np.int64), result.columns, bad, blank)

    def _merged(self, lines: int, fast: _LinesTaken, slow: _LinesTaken) -> Parsed:
        """The lines of both ways in their order."""
        columns = slow.columns if not len(fast.good) else fast.columns
        if len(fast.good) and len(slow.good):
            order = np.argsort(np.concatenate((fast.good, slow.good)), kind="stable")
            pairs = zip(fast.columns, slow.columns, strict=True)
            columns = tuple(np.concatenate(pair)[order] for pair in pairs)
        if not columns:
            nothing: dict[str, ArrowArray] = self.arrays([() for _ in self.schema])
            columns = decode(nothing, 0, self.schema, self._layout, self._strings).columns
        bad = [
            BadLine(number - bisect(slow.blank, number), number, line.decode(errors="replace"), reason)
            for number, line, reason in sorted(fast.bad + slow.bad, key=lambda entry: entry[0])
        ]
        return Parsed(columns, len(fast.good) + len(slow.good), lines - len(slow.blank), lines, bad)


@dataclass(frozen=True)
class _LinesTaken:
    """What one way made of its lines, which are known by their numbers: events, bad ones, and blank ones."""

    good: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    columns: Columns = ()
    bad: list[tuple[int, bytes, str]] = field(default_factory=list)
    blank: list[int] = field(default_factory=list)


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


def line_ends(chunk: bytes) -> NDArray[np.int64]:
    """Where the line ends stand."""
    return np.flatnonzero(np.frombuffer(chunk, np.uint8) == _LINE_END)


def without(chunk: bytes, odd: NDArray[np.bool_]) -> tuple[NDArray[np.int64], bytes]:
    """The numbers of the lines that are not odd, and these lines."""
    starts = np.append(0, line_ends(chunk) + 1)
    edges = np.flatnonzero(
        np.diff(odd, prepend=True, append=True)
    )  # where runs of lines that stay begin and end
    runs = zip(starts[edges[::2]].tolist(), starts[edges[1::2]].tolist(), strict=True)
    return np.flatnonzero(~odd), b"".join([chunk[start:stop] for start, stop in runs])


def _cut(chunk: bytes, ends: NDArray[np.int64], number: int) -> bytes:
    return chunk[int(ends[number - 1]) + 1 if number else 0 : int(ends[number])]


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
