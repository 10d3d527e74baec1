"""Results in one CSV file."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.files.text_batches import EXACTLY_ONCE, TextFileBatches
from penstock.connectors.files.text_sink import TextFileWriter, TextFormat, times_as_text
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer
from penstock.memory.arrow import ArrowArray
from penstock.query.errors import QueryError
from penstock.query.types import Schema


class Csv(NodeSink):
    """Writes a header and then rows as they come. A null is an empty field, a timestamp ISO 8601 in UTC.

    On Spark the file is on the driver's machine, and the checkpoint says how far each batch came: a run that
    goes on refuses a file that is not what was delivered. ``overwrite`` is for new runs only.
    """

    def __init__(self, path: str | Path, *, delimiter: str = ",", overwrite: bool = False) -> None:
        if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
            raise QueryError(
                "delimiter must be one character", detail=f"got {delimiter!r}", hint="write e.g. ';'"
            )
        self._path, self._delimiter, self._overwrite = Path(path), delimiter, overwrite

    @property
    def guarantee(self) -> str:
        return "rows are in the file once written; a crash may cut the last line, a new run starts a new file"

    @property
    def target(self) -> Path:
        return self._path

    @property
    def batch_guarantee(self) -> str:
        return EXACTLY_ONCE

    def open(self, schema: Schema) -> Writer:
        return TextFileWriter(self._path, CsvText(schema, self._delimiter), self._overwrite)

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        text = CsvText(schema, self._delimiter)
        return TextFileBatches(self._path, "csv", text, self._overwrite, resumed)


class CsvText(TextFormat):
    """Lines of CSV. Not by Arrow's own writer: it puts every string in quotes or none."""

    def __init__(self, schema: Schema, delimiter: str) -> None:
        self._names = schema.names
        self._delimiter = pa.scalar(delimiter)
        self._special = f'["\r\n{re.escape(delimiter)}]'
        self._null = ""
        if len(schema) == 1:  # a line of nothing would be no row
            self._special += "|^$"
            self._null = '""'

    @property
    def header(self) -> bytes:
        return self._joined([self._quoted(pa.array([name])) for name in self._names])

    def lines(self, batch: pa.RecordBatch) -> bytes:
        columns: list[ArrowArray] = []
        for column in times_as_text(batch).columns:
            is_text = pa.types.is_string(column.type)
            columns.append(self._quoted(column) if is_text else column.cast(pa.string()))
        return self._joined(columns)

    def _quoted(self, texts: ArrowArray) -> ArrowArray:
        """In quotes where a text holds what would end it."""
        special: ArrowArray = pc.match_substring_regex(texts, self._special)
        if not special.true_count:
            return texts
        doubled = pc.replace_substring(texts, '"', '""')
        quoted = pc.binary_join_element_wise(pa.scalar('"'), doubled, pa.scalar('"'), pa.scalar(""))
        return pc.if_else(special, quoted, texts)

    def _joined(self, columns: list[ArrowArray]) -> bytes:
        joined: ArrowArray = pc.binary_join_element_wise(
            *columns, self._delimiter, null_handling="replace", null_replacement=self._null
        )
        lines: ArrowArray = pc.binary_join_element_wise(joined, pa.scalar("\n"), pa.scalar(""))
        return "".join(lines.to_pylist()).encode()
