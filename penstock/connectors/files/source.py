"""Files as a source: Parquet, Arrow, CSV and JSON lines; one file, several, or a folder that is watched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from penstock.connectors.files.journal import FileJournal
from penstock.connectors.files.parts import FilePart
from penstock.connectors.files.positions import FilePositions, check_read, renew_unread
from penstock.connectors.files.reader import FilesReader, FolderReader
from penstock.connectors.files.text_files import (
    COMPRESSED,
    bytes_per_line,
    infer_csv,
    infer_json,
    line_end,
    lines_before,
    read_csv,
    read_json,
)
from penstock.connectors.formats.lines import Parsed
from penstock.connectors.formats.tables import (
    arrow_file_schema,
    arrow_rows,
    near_row_group,
    parquet_bytes,
    parquet_rows,
    parquet_schema,
    read_arrow,
    read_parquet,
)
from penstock.connectors.reader import NodeSource, Positions, Reader, Resume
from penstock.connectors.sizes import event_bytes
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.types import DataType, Schema

Format = Literal["parquet", "arrow", "csv", "jsonl"]
SchemaLike = Schema | Mapping[str, str | DataType]

_SUFFIXES: dict[str, tuple[str, ...]] = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "csv": (".csv",),
    "jsonl": (".jsonl", ".ndjson", ".json"),
}


class Files(NodeSource):
    """The events of files, in name order, as one partition. Replayable as long as the files stay.

    ``path`` is a file, a folder, or a glob such as ``data/*.csv``. Of a folder, the files with the format's
    usual endings are read, or those that match ``pattern``; names that start with ``.`` or ``_`` or end in
    ``.tmp`` never are. With ``watch`` the source goes on for ever: files that appear later are read too, in
    name order among those found together. Write such a file under another name and rename it when it is
    whole.

    Without ``schema`` it is taken from the first file, and a column may hold nulls if it does there. Records
    that do not fit are bad records, kept with the reason. Never holds more than a batch of a file in memory.
    """

    def __init__(
        self,
        path: str | Path,
        format: Format | None = None,
        schema: SchemaLike | None = None,
        *,
        watch: bool = False,
        pattern: str | None = None,
        ordered: bool = False,
        delimiter: str = ",",
        header: bool = True,
    ) -> None:
        self._path, self._pattern, self._watch, self._ordered = Path(path), pattern, watch, ordered
        self._delimiter, self._header = delimiter, header
        if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
            raise QueryError(
                "delimiter must be one character", detail=f"got {delimiter!r}", hint="write e.g. ';'"
            )
        self._format = _format(self._path, format)
        if not header and schema is None:
            raise QueryError(
                "a CSV file without header needs a schema", hint="give schema={'ts': 'timestamp', ...}"
            )
        if not watch and not self.list_files():
            raise QueryError(
                f"no {self._format} file at '{path}'", hint="check the path, or give watch=True and schema="
            )
        self._schema = self._infer() if schema is None else Schema.of(schema)
        if not self._schema.fields:
            raise QueryError(f"no column in '{path}'", hint="give schema=")

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def ordered(self) -> bool:
        return self._ordered

    @property
    def bounded(self) -> bool:
        return not self._watch

    def key(self) -> tuple[Any, ...]:
        place = str(self._path.absolute())
        how = (self._format, self._pattern, self._watch, self._ordered, self._delimiter, self._header)
        return ("Files", place, *how, self._schema)

    @property
    def unit(self) -> str:
        """What a record is in such a file."""
        return "line" if self._format in ("csv", "jsonl") else "row"

    def list_files(self) -> list[Path]:
        """The files there now that belong to the source, in name order."""
        path = self._path
        if path.is_dir():
            found: Iterator[Path] = path.glob(self._pattern or "*")
            if self._pattern is None:
                found = (file for file in found if _suffix(file) in _SUFFIXES[self._format])
        elif not path.exists() and (first := _glob_part(path)) is not None:
            found = Path(*path.parts[:first]).glob(str(Path(*path.parts[first:])))
        else:
            found = iter([path])
        return sorted(file for file in found if _is_whole(file) and file.is_file())

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        return [FolderReader(self, self._watch, layout, strings)]

    def positions(self, journal: str | None = None, start: Sequence[int] | None = None) -> Positions:
        return FilePositions(self, journal)

    def open_range(
        self,
        partition: int,
        resume: Resume,
        end: int,
        layout: Layout,
        strings: StringPool,
        hint: Any = None,
    ) -> Reader:
        return FilesReader(self, hint, layout, strings, resume)

    def check_input(self, journal: str, position: int, mark: str | None) -> list[str]:
        known = FileJournal(journal)
        if mark is not None:
            known.check(mark)
        return check_read(self, known.files, position)

    def begin_run(self, journal: str, position: int) -> None:
        renew_unread(self, FileJournal(journal), position)

    # -- files in parts --------------------------------------------------------------------------------------

    def units_in(self, path: Path) -> int:
        """How many units a file has in which its parts are measured: rows, or bytes of text."""
        if self._format == "parquet":
            return parquet_rows(path)
        return path.stat().st_size if self._is_text else arrow_rows(path)

    def units_per_event(self, path: Path) -> float:
        """About how many of them an event takes, for a look at no more than the file's beginning."""
        return bytes_per_line(path) if self._is_text else 1.0

    def bytes_per_event(self, path: Path) -> int:
        """About how much memory an event takes."""
        if self._format == "parquet":
            return max(event_bytes(self._schema), parquet_bytes(path) // max(1, parquet_rows(path)))
        return max(event_bytes(self._schema), int(self.units_per_event(path)))

    def cut(self, path: Path, begin: int, place: int) -> int | None:
        """Where a part from ``begin`` ends that is to end at about ``place``, between two records; None if
        the file can be read in one piece only."""
        if self._format == "parquet":
            return near_row_group(path, begin, place)
        return line_end(path, place) if self._is_text else place

    def records_before(self, part: FilePart) -> int:
        """How many lines or rows the file has in front of the part."""
        return lines_before(part.path, part.start) if self._is_text else part.start

    def batches(self, part: FilePart, layout: Layout, strings: StringPool) -> Iterator[Parsed]:
        """The events of a part of a file, batch by batch."""
        if self._format == "parquet":
            return read_parquet(part, self._schema, layout, strings)
        if self._format == "arrow":
            return read_arrow(part, self._schema, layout, strings)
        if self._format == "csv":
            return read_csv(part, self._schema, layout, strings, self._delimiter, self._header)
        return read_json(part, self._schema, layout, strings)

    @property
    def _is_text(self) -> bool:
        return self._format in ("csv", "jsonl")

    def _infer(self) -> Schema:
        files = self.list_files()
        if not files:
            raise QueryError(
                f"no {self._format} file at '{self._path}' yet", hint="give schema={'ts': 'timestamp', ...}"
            )
        if self._format == "parquet":
            return parquet_schema(files[0])
        if self._format == "arrow":
            return arrow_file_schema(files[0])
        return infer_csv(files[0], self._delimiter) if self._format == "csv" else infer_json(files[0])


class Csv(Files):
    """CSV files; see :class:`Files`. An empty field is null, or the empty string in a string column without
    nulls.
    """

    def __init__(
        self,
        path: str | Path,
        schema: SchemaLike | None = None,
        *,
        delimiter: str = ",",
        header: bool = True,
        watch: bool = False,
        pattern: str | None = None,
        ordered: bool = False,
    ) -> None:
        super().__init__(
            path,
            "csv",
            schema,
            watch=watch,
            pattern=pattern,
            ordered=ordered,
            delimiter=delimiter,
            header=header,
        )


class _Table(Files):
    _kind: Format

    def __init__(
        self,
        path: str | Path,
        schema: SchemaLike | None = None,
        *,
        watch: bool = False,
        pattern: str | None = None,
        ordered: bool = False,
    ) -> None:
        super().__init__(path, self._kind, schema, watch=watch, pattern=pattern, ordered=ordered)


class Parquet(_Table):
    """Parquet files; see :class:`Files`."""

    _kind = "parquet"


class Arrow(_Table):
    """Arrow IPC files (Feather); see :class:`Files`."""

    _kind = "arrow"


class JsonLines(_Table):
    """Files with one JSON object a line; see :class:`Files`."""

    _kind = "jsonl"


def _format(path: Path, given: str | None) -> str:
    if given is not None:
        if given not in _SUFFIXES:
            raise QueryError(f"unknown format '{given}'", hint=f"formats are {', '.join(_SUFFIXES)}")
        return given
    ending = _suffix(path)
    for name, suffixes in _SUFFIXES.items():
        if ending in suffixes:
            return name
    raise QueryError(
        f"cannot tell the format of '{path}'", hint=f"give format=, one of {', '.join(_SUFFIXES)}"
    )


def _suffix(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in COMPRESSED else path).suffix


def _glob_part(path: Path) -> int | None:
    """The first part of the path that is a pattern."""
    return next((place for place, part in enumerate(path.parts) if any(sign in part for sign in "*?[")), None)


def _is_whole(path: Path) -> bool:
    return not path.name.startswith((".", "_")) and not path.name.endswith(".tmp")
