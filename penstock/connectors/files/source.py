"""Files as a source: Parquet, Arrow, CSV and JSON lines; one file, several, or a folder that is watched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from penstock.connectors.files.journal import FileJournal
from penstock.connectors.files.positions import FilePositions, check_read, renew_unread
from penstock.connectors.files.reader import FilesReader, FolderReader
from penstock.connectors.formats.csv import CsvFormat
from penstock.connectors.formats.format import Format
from penstock.connectors.formats.registry import FormatName, file_format, suffix
from penstock.connectors.reader import NodeSource, Positions, Reader, Resume
from penstock.connectors.sizes import event_bytes
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.types import DataType, Schema

#: Which columns of text must fit their types: all of the schema, or those that some query reads.
Check = Literal["all", "needed"]
SchemaLike = Schema | Mapping[str, str | DataType]


class Files(NodeSource):
    """The events of files, in name order, as one partition. Replayable as long as the files stay.

    ``path`` is a file, a folder, or a glob such as ``data/*.csv``. Of a folder, the files with the format's
    usual endings are read, or those that match ``pattern``; names that start with ``.`` or ``_`` or end in
    ``.tmp`` never are. With ``watch`` the source goes on for ever: files that appear later are read too, in
    name order among those found together. Write such a file under another name and rename it when it is
    whole.

    Without ``schema`` it is taken from the first file, and a column may hold nulls if it does there. Records
    that do not fit are bad records, kept with the reason. Never holds more than a few pieces of a file in
    memory. In text all columns of the schema are checked, so that which records are bad does not depend on
    the queries; with ``check="needed"`` only those are that some query reads.
    """

    def __init__(
        self,
        path: str | Path,
        format: FormatName | Format | None = None,
        schema: SchemaLike | None = None,
        *,
        watch: bool = False,
        pattern: str | None = None,
        ordered: bool = False,
        delimiter: str | None = None,
        header: bool | None = None,
        check: Check = "all",
    ) -> None:
        if check not in get_args(Check):
            raise QueryError(
                "check= must be one of 'all' and 'needed'", detail=f"got {check!r}", hint="leave it out"
            )
        self._path, self._pattern, self._watch, self._ordered = Path(path), pattern, watch, ordered
        self._check = check
        self._format = file_format(self._path, format, delimiter=delimiter, header=header)
        if schema is None and self._format.no_schema is not None:
            raise QueryError(self._format.no_schema, hint="give schema={'ts': 'timestamp', ...}")
        if not watch and not self.list_files():
            raise QueryError(
                f"no {self._format.name} file at '{path}'",
                hint="check the path, or give watch=True and schema=",
            )
        self._schema = self._infer() if schema is None else Schema.of(schema)
        if not self._schema.fields:
            raise QueryError(f"no column in '{path}'", hint="give schema=")
        self._format.check(self._schema)

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
        how: tuple[Any, ...] = (self._format, self._pattern, self._watch, self._ordered)
        if self._check != "all":
            how = (*how, self._check)
        return ("Files", place, *how, self._schema)

    @property
    def format(self) -> Format:
        """What the files are read as."""
        return self._format

    def checked(self, layout: Layout) -> Schema:
        """The columns that are parsed where the layout's are read."""
        needed = Schema(field for field in self._schema if field.name in layout)
        return needed if self._check == "needed" and needed.fields else self._schema

    def list_files(self) -> list[Path]:
        """The files there now that belong to the source, in name order."""
        path = self._path
        if path.is_dir():
            found: Iterator[Path] = path.glob(self._pattern or "*")
            if self._pattern is None:
                found = (file for file in found if suffix(file) in self._format.endings)
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

    def bytes_per_event(self, path: Path) -> int:
        return max(event_bytes(self._schema), self._format.bytes_per_event(path))

    def _infer(self) -> Schema:
        files = self.list_files()
        if not files:
            raise QueryError(
                f"no {self._format.name} file at '{self._path}' yet",
                hint="give schema={'ts': 'timestamp', ...}",
            )
        return self._format.infer(files[0])


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
        check: Check = "all",
    ) -> None:
        super().__init__(
            path,
            CsvFormat(delimiter, header),
            schema,
            watch=watch,
            pattern=pattern,
            ordered=ordered,
            check=check,
        )


class _Table(Files):
    _kind: FormatName

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


class JsonLines(Files):
    """Files with one JSON object a line; see :class:`Files`."""

    def __init__(
        self,
        path: str | Path,
        schema: SchemaLike | None = None,
        *,
        watch: bool = False,
        pattern: str | None = None,
        ordered: bool = False,
        check: Check = "all",
    ) -> None:
        super().__init__(path, "jsonl", schema, watch=watch, pattern=pattern, ordered=ordered, check=check)


def _glob_part(path: Path) -> int | None:
    """The first part of the path that is a pattern."""
    return next((place for place, part in enumerate(path.parts) if any(sign in part for sign in "*?[")), None)


def _is_whole(path: Path) -> bool:
    return not path.name.startswith((".", "_")) and not path.name.endswith(".tmp")
