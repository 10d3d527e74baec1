"""Annotated messages into a table on disk, a hundred at a time."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.files.paths import prepare_file
from penstock.connectors.memory.sink import plain_rows
from penstock.connectors.writer import NodeSink, Writer
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema

BATCH = 100


class TableInsert(NodeSink):
    """Inserts rows into the table ``messages`` of a SQLite file, ``batch`` rows in one transaction."""

    def __init__(self, path: str | Path, *, batch: int = BATCH, overwrite: bool = False) -> None:
        if batch < 1:
            raise QueryError("batch must be positive", detail=f"got {batch}", hint="write e.g. 100")
        self._path, self._batch, self._overwrite = Path(path), batch, overwrite

    @property
    def guarantee(self) -> str:
        return f"whole batches of {self._batch} rows stay, those of the unfinished one are lost"

    def open(self, schema: Schema) -> Writer:
        prepare_file(self._path, self._overwrite)
        self._path.unlink(missing_ok=True)
        try:
            # One turn at a time, though on any thread.
            connection = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        except sqlite3.Error as error:
            raise RunError(f"cannot write '{self._path}': {error}") from None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        columns = ", ".join(f'"{name}"' for name in schema.names)
        connection.execute(f"CREATE TABLE messages ({columns})")
        return _TableWriter(connection, len(schema), self._batch)


class _TableWriter(Writer):
    def __init__(self, connection: sqlite3.Connection, width: int, batch: int) -> None:
        self._connection, self._batch = connection, batch
        self._insert = f"INSERT INTO messages VALUES (?{', ?' * (width - 1)})"
        self._rows: list[tuple[Any, ...]] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._rows += [tuple(row.values()) for row in plain_rows(batch)]
        while len(self._rows) >= self._batch:
            self._send(self._batch)

    def close(self, complete: bool) -> None:
        if self._rows:
            self._send(len(self._rows))
        self._connection.close()

    def _send(self, count: int) -> None:
        connection = self._connection
        connection.execute("BEGIN")
        connection.executemany(self._insert, self._rows[:count])
        connection.execute("COMMIT")
        del self._rows[:count]
