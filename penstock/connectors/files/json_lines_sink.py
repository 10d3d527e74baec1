"""Results in one file with a JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from penstock.connectors.files.text_batches import EXACTLY_ONCE, TextFileBatches
from penstock.connectors.files.text_sink import TextFileWriter, TextFormat, times_as_text
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer
from penstock.query.types import Schema


class JsonLines(NodeSink):
    """Writes every row as a JSON object on a line of its own; timestamps are ISO 8601 text in UTC.

    Floats that JSON has no word for are written ``NaN``, ``Infinity`` and ``-Infinity``, which our source and
    most readers take. Costs some microseconds a row: for much output, write Parquet.

    On Spark the file is on the driver's machine, and the checkpoint says how far each batch came: a run that
    goes on refuses a file that is not what was delivered. ``overwrite`` is for new runs only.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False) -> None:
        self._path, self._overwrite = Path(path), overwrite

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
        return TextFileWriter(self._path, JsonText(), self._overwrite)

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        text = JsonText(schema.names)
        return TextFileBatches(self._path, "json_lines", text, self._overwrite, resumed)


class JsonText(TextFormat):
    """Lines of JSON, without spaces."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        self._names = names

    @property
    def beginning(self) -> bytes:
        return "".join(["{", *(f"{self._encode(name)}:" for name in self._names[:1])]).encode()

    def lines(self, batch: pa.RecordBatch) -> bytes:
        encode = self._encode
        return "".join(f"{encode(row)}\n" for row in times_as_text(batch).to_pylist()).encode()
