"""A source that a test writes while a run reads it: rows, watermarks and the end, in their order."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.connectors.reader import NodeSource, Positions, Reader, Resume
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.operators.run.rows import converter, to_columns
from penstock.query.errors import QueryError
from penstock.query.types import DataType, Field, Schema

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Tape(NodeSource):
    """What a test says, for a source of its app: see :mod:`penstock.testing`.

    It is a file of lines, so that any process can read it, and read it again: a list is a row, a number the
    event time that the source has come to, null the end.
    """

    def __init__(self, schema: Schema | Mapping[str, str | DataType]) -> None:
        self._schema = Schema.of(schema)
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-tape-")
        self._path = Path(self._folder.name, "tape")
        self._path.touch()
        self._converters = [(field, converter(field)) for field in self._schema]
        self._lines = 0
        self._ended = False

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """More events, as dicts; a missing key is a null, times are datetimes or microseconds."""
        self._say(
            [json.dumps([self._value(row, field, fits) for field, fits in self._converters]) for row in rows]
        )

    def watermark(self, time: datetime | int) -> None:
        """Time has come so far: an event before it is late from now on."""
        self._say([json.dumps(_time_us(time))])

    def end(self) -> None:
        """Nothing more will come."""
        self._say(["null"])
        self._ended = True

    @property
    def lines(self) -> int:
        """How much was said so far: its position when all of it has been read."""
        return self._lines

    @property
    def schema(self) -> Schema:
        return self._schema

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        return [_TapeReader(self, Resume(), None, layout, strings)]

    def positions(self, journal: str | None = None, start: Sequence[int] | None = None) -> Positions:
        return _TapePositions(self._path)

    def open_range(
        self,
        partition: int,
        resume: Resume,
        end: int,
        layout: Layout,
        strings: StringPool,
        hint: Any = None,
    ) -> Reader:
        return _TapeReader(self, resume, end, layout, strings)

    def _say(self, lines: list[str]) -> None:
        if self._ended:
            raise QueryError("the tape has ended", hint="call end() after everything else")
        with self._path.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))
        self._lines += len(lines)

    def _value(self, row: Mapping[str, Any], field: Field, fits: Any) -> Any:
        unknown = row.keys() - {*self._schema.names}
        if unknown:
            raise QueryError(
                f"unknown column '{min(unknown)}'", hint=f"columns are {', '.join(self._schema.names)}"
            )
        value = row.get(field.name)
        try:
            return fits(_time_us(value) if field.dtype is DataType.TIMESTAMP and value is not None else value)
        except ValueError as misfit:
            raise QueryError(
                f"column '{field.name}' does not fit", detail=f"got {misfit}", hint=str(field)
            ) from None

    def __getstate__(self) -> dict[str, Any]:
        return {"_schema": self._schema, "_path": self._path}


class _Lines:
    """The lines of a tape so far; what a writer is in the middle of is left for later."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0
        self.said: list[Any] = []

    def look(self) -> list[Any]:
        """All lines, the new ones too."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        self.said += [json.loads(line) for line in whole.splitlines()]
        return self.said


class _TapePositions(Positions):
    """A position is a number of lines."""

    def __init__(self, path: Path) -> None:
        self._lines = _Lines(path)

    @property
    def final(self) -> list[int] | None:
        said = self._lines.look()
        return [len(said)] if said and said[-1] is None else None

    def latest(self, start: Sequence[int], limit: int | None) -> list[int]:
        said = len(self._lines.look())
        return [said if limit is None else min(said, start[0] + limit)]


class _TapeReader(Reader):
    def __init__(
        self, tape: Tape, resume: Resume, end: int | None, layout: Layout, strings: StringPool
    ) -> None:
        super().__init__()
        self.offset, self._line, self._end = resume.offset, resume.position, end
        self._lines, self._strings = _Lines(tape._path), strings
        names = tape.schema.names
        self._fields = [
            (names.index(field.name), field, layout.data(field.name), layout.nulls(field.name))
            for field in layout.visible
        ]
        self._reached_us: int | None = None

    def available(self, now_ns: int) -> int:
        return (len(self._lines.look()) if self._end is None else self._end) - self._line

    @property
    def finished(self) -> bool:
        said = self._lines.said
        if self._end is not None:
            return self._line >= self._end
        return self._line == len(said) and bool(said) and said[-1] is None

    @property
    def reached_us(self) -> int | None:
        return self._reached_us

    def read(self, columns: Columns, start: int, limit: int) -> int:
        said = self._lines.look()[: self._end]
        while self._line < len(said) and not isinstance(said[self._line], list):
            if said[self._line] is not None:
                self._reached_us = max(said[self._line], self._reached_us or said[self._line])
            self._line += 1
        first = self._line
        while self._line < min(len(said), first + limit) and isinstance(said[self._line], list):
            self._line += 1  # a watermark holds for what stands behind it
        count = self._line - first
        for place, field, data, nulls in self._fields:
            arrays = to_columns([row[place] for row in said[first : self._line]], field, self._strings)
            columns[data][start : start + count] = arrays[0]
            if nulls is not None:
                columns[nulls][start : start + count] = arrays[1]
        self.offset += count
        return count


def _time_us(time: datetime | int) -> int:
    if isinstance(time, datetime):
        aware = time if time.tzinfo else time.replace(tzinfo=UTC)
        return (aware - _EPOCH) // _EPOCH.resolution
    return time
