"""A file with a table, under a hidden name until it is whole."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Self

import pyarrow as pa

from penstock.connectors.files.durable import hidden, name_whole
from penstock.connectors.formats.tables import TableFormat

GROUP_ROWS = 131_072  # rows that are written at a time: a row group


class HiddenTable:
    """Takes rows, and gives the file its name when it is finished, replacing one that is there."""

    def __init__(self, path: Path, format: TableFormat, schema: pa.Schema) -> None:
        self.rows = 0
        self._path, self._schema = path, schema
        self._table = format.create(hidden(path), schema)
        self._collected: list[pa.RecordBatch] = []
        self._collected_rows = 0

    def write(self, rows: pa.RecordBatch) -> None:
        self.rows += rows.num_rows
        while rows.num_rows:
            piece = rows.slice(0, GROUP_ROWS - self._collected_rows)
            rows = rows.slice(piece.num_rows)
            self._collected.append(piece)
            self._collected_rows += piece.num_rows
            if self._collected_rows == GROUP_ROWS:
                self._write_group()

    def finish(self) -> None:
        """The file and its name are on disk when this returns."""
        self._write_group()
        self._table.close()
        name_whole(self._path)

    def _write_group(self) -> None:
        if self._collected_rows:
            self._table.write_table(pa.Table.from_batches(self._collected, self._schema))
        self._collected, self._collected_rows = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.finish()
        else:  # it stays hidden
            with contextlib.suppress(Exception):
                self._table.close()
