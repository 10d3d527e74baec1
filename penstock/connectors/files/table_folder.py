"""A folder of files with tables: one per batch, each replaced if its batch comes again, or parts of a run.

A file appears under its name when it is whole.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.connectors.files.batches import FileBatches
from penstock.connectors.files.folder_delivery import FolderDelivery
from penstock.connectors.files.hidden_table import HiddenTable
from penstock.connectors.files.paths import absolute, check_folder, make_folder, prepare_folder
from penstock.connectors.formats.tables import TableFormat
from penstock.connectors.writer import Resumed
from penstock.memory.arrow import arrow_schema
from penstock.query.types import Schema


class TableFolder(FileBatches[FolderDelivery]):
    """Writes a file ``batch-<number>`` for every batch, with a number of 12 digits; with ``rows_per_file``
    the rows of a run as ``part-00000``, ``part-00001`` …, the last of which is finished by ``end``."""

    def __init__(
        self,
        folder: Path,
        format: TableFormat,
        schema: Schema,
        overwrite: bool,
        resumed: Resumed | None,
        rows_per_file: int | None = None,
    ) -> None:
        self._format, self._schema = format, arrow_schema(schema)
        self._ending, self._rows_per_file = format.endings[0], rows_per_file
        self._part: HiddenTable | None = None
        self._parts = 0  # that are whole
        self._new = FolderDelivery(format.delivered_as, str(absolute(folder)), ending=self._ending)
        super().__init__(self._new, overwrite, resumed)

    def begin(self) -> None:
        if self._is_new:
            # The files that are ours: of node runs, and of batches.
            patterns = (f"part-*{self._ending}", self._new.pattern)
            prepare_folder(self._path, patterns, self._overwrite)
        elif self._present.is_empty:
            make_folder(self._path)
        self._lock.take()
        self._present.roll_back(self._batch)

    def write(self, rows: pa.RecordBatch) -> None:
        assert self._rows_per_file is not None
        position = 0
        while position < rows.num_rows:
            part = self._part = self._part or self._next_part()
            piece = rows.slice(position, self._rows_per_file - part.rows)
            part.write(piece)
            position += piece.num_rows
            if part.rows == self._rows_per_file:
                self._finish_part(part)

    def end(self, batch_id: int) -> None:
        if self._rows_per_file is not None:
            if self._part is not None or not self._parts:
                self._finish_part(self._part or self._next_part())
        elif self._present.is_empty:  # so that the folder can be read
            self.write_batch(batch_id, self._schema.empty_table())

    def _replaced(self, batch_id: int, rows: pa.Table) -> FolderDelivery:
        with HiddenTable(self._path / self._new.file_name(batch_id), self._format, rows.schema) as file:
            for batch in rows.to_batches():
                file.write(batch)
        return self._counted.with_file(batch_id)

    def _next_part(self) -> HiddenTable:
        return HiddenTable(self._path / f"part-{self._parts:05}{self._ending}", self._format, self._schema)

    def _finish_part(self, part: HiddenTable) -> None:
        part.finish()
        self._part, self._parts = None, self._parts + 1

    def _is_ours(self) -> bool:
        # Before anything has counted, nothing but the file of the batch that failed can be ours.
        return set(self._new.beyond(0)) <= {self._batch}

    def _check_place(self) -> None:
        check_folder(self._path, self._overwrite)
