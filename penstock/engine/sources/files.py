"""Files as a source: Parquet, Arrow, CSV and JSON lines; one file, several, or a folder that is watched."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from penstock.engine.sources.buffered import BufferedReader
from penstock.engine.sources.reader import NodeSource, Reader
from penstock.engine.sources.tables import arrow_file_schema, parquet_schema, read_arrow, read_parquet
from penstock.engine.sources.text import Parsed
from penstock.engine.sources.text_files import infer_csv, infer_json, read_csv, read_json
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
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")  # CSV and JSON lines only; the others compress inside
_POLL_NS = 100_000_000


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
        return [_FilesReader(self, self._watch, layout, strings)]

    def batches(self, path: Path, layout: Layout, strings: StringPool) -> Iterator[Parsed]:
        """The events of one file, batch by batch."""
        if self._format == "parquet":
            return read_parquet(path, self._schema, layout, strings)
        if self._format == "arrow":
            return read_arrow(path, self._schema, layout, strings)
        if self._format == "csv":
            return read_csv(path, self._schema, layout, strings, self._delimiter, self._header)
        return read_json(path, self._schema, layout, strings)

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


class _FilesReader(BufferedReader):
    def __init__(self, source: Files, watch: bool, layout: Layout, strings: StringPool) -> None:
        super().__init__(layout)
        self._source, self._watch, self._layout, self._strings = source, watch, layout, strings
        self._seen: set[Path] = set()
        self._waiting: deque[Path] = deque()
        self._file: Path | None = None
        self._batches: Iterator[Parsed] | None = None
        self._records = 0  # records before the next batch, over all files
        self._lines = 0  # lines before the next batch, in the current file
        self._listed_ns: int | None = None
        self._list()

    def available(self, now_ns: int) -> int:
        if self.buffered:
            return self.buffered
        if self._batches is not None or self._waiting:
            return 1
        if self._watch and (self._listed_ns is None or now_ns >= self._listed_ns + _POLL_NS):
            self._listed_ns = now_ns
            self._list()
        return 1 if self._waiting else 0

    @property
    def finished(self) -> bool:
        return not (self._watch or self.buffered or self._waiting or self._batches is not None)

    def next_due_ns(self) -> int | None:
        if not self._watch or self._listed_ns is None:
            return None
        return self._listed_ns + _POLL_NS

    def refill(self) -> None:
        while self._batches is not None or self._waiting:
            if self._batches is None:
                self._file, self._lines = self._waiting.popleft(), 0
                self._batches = self._source.batches(self._file, self._layout, self._strings)
            parsed = next(self._batches, None)
            if parsed is None:
                self._batches = None
                continue
            assert self._file is not None
            for bad in parsed.bad:
                place = f"{self._source.unit} {self._lines + bad.line + 1} of {self._file.name}"
                self.reject(self._records + bad.record, bad.text, f"{bad.reason} ({place})")
            self._records += parsed.records
            self._lines += parsed.lines
            self.hold(parsed.columns, parsed.count)
            return

    def close(self) -> None:
        if self._batches is not None:
            self._batches.close()  # type: ignore[attr-defined]  # they are generators
            self._batches = None
        self._waiting.clear()

    def _list(self) -> None:
        new = [path for path in self._source.list_files() if path not in self._seen]
        self._seen.update(new)
        self._waiting.extend(new)


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
    return (path.with_suffix("") if path.suffix in _COMPRESSED else path).suffix


def _glob_part(path: Path) -> int | None:
    """The first part of the path that is a pattern."""
    return next((place for place, part in enumerate(path.parts) if any(sign in part for sign in "*?[")), None)


def _is_whole(path: Path) -> bool:
    return not path.name.startswith((".", "_")) and not path.name.endswith(".tmp")
