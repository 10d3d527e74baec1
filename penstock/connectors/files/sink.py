"""Files as a sink: CSV, JSON lines and text as one file, Parquet and Arrow as a folder of files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from penstock.connectors.files.batches import FileBatches, WholeRun
from penstock.connectors.files.table_folder import TableFolder
from penstock.connectors.files.text_file import TextFile
from penstock.connectors.formats.arrow import ArrowFormat
from penstock.connectors.formats.csv import CsvFormat
from penstock.connectors.formats.format import Format
from penstock.connectors.formats.json_lines import JsonLinesFormat
from penstock.connectors.formats.line_format import LineFormat
from penstock.connectors.formats.parquet import ParquetFormat
from penstock.connectors.formats.registry import FormatName, file_format
from penstock.connectors.formats.tables import TableFormat
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer
from penstock.query.errors import QueryError
from penstock.query.types import Schema

_ROWS_PER_FILE = 10_000_000


class Files(NodeSink):
    """Writes one file of lines or, in a format of tables, a folder of files; ``path`` is what is written.

    **Lines** are written as they come. On Spark the checkpoint says how far each batch came, and a run that
    goes on refuses a file that is not what was delivered.

    **Tables** are files ``part-00000.parquet``, ``part-00001.parquet`` … of ``rows_per_file`` rows. A file
    has a hidden name until it is whole; the last one is finished when the run ends. Without any row there is
    one empty file, so that the folder can be read. On Spark every batch that has rows makes one file,
    ``batch-000000000007.parquet``, however few they are: ``rows_per_file`` plays no part, and nothing is
    compacted. The checkpoint knows the names, sizes and checksums of all of them: a run that goes on refuses
    a folder in which one is missing or another.

    On Spark the file or folder is on the driver's machine. ``overwrite`` is for new runs only.
    """

    def __init__(
        self,
        path: str | Path,
        format: FormatName | Format | None = None,
        *,
        rows_per_file: int | None = None,
        overwrite: bool = False,
    ) -> None:
        self._path, self._overwrite = Path(path), overwrite
        self._format = file_format(self._path, format)
        if rows_per_file is not None and isinstance(self._format, LineFormat):
            raise QueryError(
                "rows_per_file is for folders of files",
                detail=f"format '{self._format.name}' writes one file",
                hint="leave it out",
            )
        if rows_per_file is not None and rows_per_file < 1:
            raise QueryError(
                "rows_per_file must be positive", detail=f"{type(self).__name__} got {rows_per_file}"
            )
        self._rows_per_file = rows_per_file or _ROWS_PER_FILE

    @property
    def target(self) -> Path:
        return self._path

    def unwritable(self) -> str | None:
        path = self._path
        if path.exists() and path.is_dir() == isinstance(self._format, LineFormat):
            return "it is a folder" if path.is_dir() else "it is a file, and a folder of files is written"
        above = path.absolute()
        while not above.exists():
            above = above.parent
        if above.is_dir() and not os.access(above, os.W_OK | os.X_OK):
            return f"folder '{above}' may not be written by this user"
        return None if above.is_dir() or above == path.absolute() else f"'{above}' is a file"

    @property
    def guarantee(self) -> str:
        if isinstance(self._format, LineFormat):
            return (
                "rows are in the file once written; a crash may cut the last line, a new run starts a new "
                "file"
            )
        return (
            "files are whole or not there; a crash loses the rows of the unfinished file, "
            "and a new run starts from the beginning"
        )

    @property
    def batch_guarantee(self) -> str:
        if isinstance(self._format, LineFormat):
            return (
                "exactly once: the checkpoint has the file's length and checksum after every batch, and rows "
                "that did not count are cut off; while a run is down, the file may end in rows of the batch "
                "in which it failed"
            )
        return "exactly once: a file per batch, whole or not there, and replaced if the batch comes again"

    def open(self, schema: Schema) -> Writer:
        return WholeRun(self._files(schema, None, self._rows_per_file))

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        return self._files(schema, resumed, None)

    def _files(self, schema: Schema, resumed: Resumed | None, rows_per_file: int | None) -> FileBatches[Any]:
        place, form, overwrite = self._path, self._format, self._overwrite
        form.check(schema)
        if isinstance(form, LineFormat):
            return TextFile(place, form, schema, overwrite, resumed)
        assert isinstance(form, TableFormat)
        return TableFolder(place, form, schema, overwrite, resumed, rows_per_file)


class Csv(Files):
    """A header and then rows, in one file; see :class:`Files`. A null is an empty field, a timestamp ISO 8601
    in UTC; quotes stand only where they are needed.
    """

    def __init__(self, path: str | Path, *, delimiter: str = ",", overwrite: bool = False) -> None:
        super().__init__(path, CsvFormat(delimiter), overwrite=overwrite)


class JsonLines(Files):
    """Every row as a JSON object on a line of one file; see :class:`Files`. Timestamps are ISO 8601 text in
    UTC.

    Floats that JSON has no word for are written ``NaN``, ``Infinity`` and ``-Infinity``, which our source and
    most readers take. Costs some microseconds a row: for much output, write Parquet.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False) -> None:
        super().__init__(path, JsonLinesFormat(), overwrite=overwrite)


class Parquet(Files):
    """A folder of Parquet files; see :class:`Files`."""

    def __init__(
        self, path: str | Path, *, rows_per_file: int = _ROWS_PER_FILE, overwrite: bool = False
    ) -> None:
        super().__init__(path, ParquetFormat(), rows_per_file=rows_per_file, overwrite=overwrite)


class Arrow(Files):
    """A folder of Arrow IPC files (Feather); see :class:`Files`."""

    def __init__(
        self, path: str | Path, *, rows_per_file: int = _ROWS_PER_FILE, overwrite: bool = False
    ) -> None:
        super().__init__(path, ArrowFormat(), rows_per_file=rows_per_file, overwrite=overwrite)
