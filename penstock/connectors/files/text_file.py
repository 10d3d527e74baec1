"""One file of lines that takes every batch once: how far it had come after each is in the manifest.

A batch is appended, and counts when the manifest has the new length. If the run fails in between, the file is
first cut back to where the batch began.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.connectors.files.batches import FileBatches
from penstock.connectors.files.durable import LogFile
from penstock.connectors.files.paths import absolute, check_file, make_folder
from penstock.connectors.files.text_delivery import TextDelivery
from penstock.connectors.formats.line_format import LineFormat
from penstock.connectors.writer import Resumed
from penstock.query.errors import RunError
from penstock.query.types import Schema


class TextFile(FileBatches[TextDelivery]):
    """Appends batches to a file, each with one write to disk."""

    def __init__(
        self, path: Path, format: LineFormat, schema: Schema, overwrite: bool, resumed: Resumed | None
    ) -> None:
        self._text = format.text(schema)
        self._log: LogFile | None = None
        super().__init__(TextDelivery(format.delivered_as, str(absolute(path))), overwrite, resumed)

    def begin(self) -> None:
        make_folder(self._path.parent)
        self._log = LogFile(self._path)
        self._lock.take()
        # The header comes with the first rows: until then the file is empty, so that a run whose checkpoint
        # does not know it yet can be started anew.
        self._log.cut(self._present.bytes)

    def write(self, rows: pa.RecordBatch) -> None:
        self._present = self._appended(self._present, self._text.lines(rows))

    def end(self, batch_id: int) -> None:
        if self._present.is_empty:
            self._present = self._after_counted(b"")

    def close(self, complete: bool) -> None:
        if self._log is not None:
            self._log.close()
        super().close(complete)

    def _replaced(self, batch_id: int, rows: pa.Table) -> TextDelivery:
        return self._after_counted(b"".join(self._text.lines(batch) for batch in rows.to_batches()))

    def _after_counted(self, lines: bytes) -> TextDelivery:
        assert self._log is not None
        if not self._log.is_at(self._path):
            raise RunError(f"'{self._path}' was removed or replaced while the run writes it")
        self._log.cut(self._counted.bytes)
        delivery = self._appended(self._counted, lines)
        self._log.sync()
        return delivery

    def _appended(self, before: TextDelivery, lines: bytes) -> TextDelivery:
        assert self._log is not None
        data = self._text.header + lines if before.is_empty else lines
        self._log.append(data)
        return before.plus(data)

    def _is_ours(self) -> bool:
        if not self._path.is_file():
            return not self._path.exists()
        beginning = self._text.beginning
        with self._path.open("rb") as file:
            data = file.read(max(1, len(beginning)))
        return beginning.startswith(data)

    def _check_place(self) -> None:
        check_file(self._path, self._overwrite)
