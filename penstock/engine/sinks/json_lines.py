"""Results in one file with a JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from penstock.engine.sinks.base import NodeSink, Writer
from penstock.engine.sinks.paths import prepare_file
from penstock.engine.sinks.text import times_as_text
from penstock.query.types import Schema


class JsonLines(NodeSink):
    """Writes every row as a JSON object on a line of its own; timestamps are ISO 8601 text in UTC.

    Floats that JSON has no word for are written ``NaN``, ``Infinity`` and ``-Infinity``, which our source and
    most readers take. Costs some microseconds a row: for much output, write Parquet.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False) -> None:
        self._path, self._overwrite = Path(path), overwrite

    @property
    def guarantee(self) -> str:
        return "rows are in the file once written; a crash may cut the last line, a new run starts a new file"

    def open(self, schema: Schema) -> Writer:
        prepare_file(self._path, self._overwrite)
        return _JsonLinesWriter(self._path)


class _JsonLinesWriter(Writer):
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")
        self._encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

    def write(self, batch: pa.RecordBatch) -> None:
        encode = self._encode
        self._file.writelines(f"{encode(row)}\n" for row in times_as_text(batch).to_pylist())
        self._file.flush()

    def close(self, complete: bool) -> None:
        self._file.close()
