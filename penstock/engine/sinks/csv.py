"""Results in one CSV file."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.sinks.base import NodeSink, Writer
from penstock.engine.sinks.paths import prepare_file
from penstock.engine.sinks.text import times_as_text
from penstock.memory.arrow import ArrowArray
from penstock.query.errors import QueryError
from penstock.query.types import Schema


class Csv(NodeSink):
    """Writes a header and then rows as they come. A null is an empty field, a timestamp ISO 8601 in UTC."""

    def __init__(self, path: str | Path, *, delimiter: str = ",", overwrite: bool = False) -> None:
        if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
            raise QueryError(
                "delimiter must be one character", detail=f"got {delimiter!r}", hint="write e.g. ';'"
            )
        self._path, self._delimiter, self._overwrite = Path(path), delimiter, overwrite

    @property
    def guarantee(self) -> str:
        return "rows are in the file once written; a crash may cut the last line, a new run starts a new file"

    def open(self, schema: Schema) -> Writer:
        prepare_file(self._path, self._overwrite)
        return _CsvWriter(self._path, schema, self._delimiter)


class _CsvWriter(Writer):
    # Not Arrow's own writer: it puts every string in quotes or none.

    def __init__(self, path: Path, schema: Schema, delimiter: str) -> None:
        self._file = path.open("wb")
        self._delimiter = pa.scalar(delimiter)
        self._special = f'["\r\n{re.escape(delimiter)}]'
        self._null = ""
        if len(schema) == 1:  # a line of nothing would be no row
            self._special += "|^$"
            self._null = '""'
        self._write_rows([self._quoted(pa.array([name])) for name in schema.names])

    def write(self, batch: pa.RecordBatch) -> None:
        columns: list[ArrowArray] = []
        for column in times_as_text(batch).columns:
            is_text = pa.types.is_string(column.type)
            columns.append(self._quoted(column) if is_text else column.cast(pa.string()))
        self._write_rows(columns)

    def close(self, complete: bool) -> None:
        self._file.close()

    def _quoted(self, texts: ArrowArray) -> ArrowArray:
        """In quotes where a text holds what would end it."""
        special: ArrowArray = pc.match_substring_regex(texts, self._special)
        if not special.true_count:
            return texts
        doubled = pc.replace_substring(texts, '"', '""')
        quoted = pc.binary_join_element_wise(pa.scalar('"'), doubled, pa.scalar('"'), pa.scalar(""))
        return pc.if_else(special, quoted, texts)

    def _write_rows(self, columns: list[ArrowArray]) -> None:
        joined: ArrowArray = pc.binary_join_element_wise(
            *columns, self._delimiter, null_handling="replace", null_replacement=self._null
        )
        lines: ArrowArray = pc.binary_join_element_wise(joined, pa.scalar("\n"), pa.scalar(""))
        if len(lines):
            self._file.write("".join(lines.to_pylist()).encode())
            self._file.flush()
