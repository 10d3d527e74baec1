"""Results as rows of a PostgreSQL table: appended or by key, each batch in one transaction, or at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import psycopg
import pyarrow as pa

from penstock.connectors.postgres.server import Connection, PostgresServer
from penstock.connectors.postgres.table import TargetTable
from penstock.connectors.staged import StagedBatches
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer
from penstock.query.environment import Env
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema

Answer = TypeVar("Answer")

_MAKE = "CREATE TABLE IF NOT EXISTS penstock_batches (sink text PRIMARY KEY, batch bigint, fence bigint)"
_TAKE_OVER = (
    "INSERT INTO penstock_batches VALUES (%s, -1, 0) ON CONFLICT (sink) DO UPDATE "
    "SET fence = penstock_batches.fence + 1 RETURNING batch, fence"
)
_COUNT = "UPDATE penstock_batches SET batch = %s WHERE sink = %s AND fence = %s AND batch < %s"


class Postgres(NodeSink):
    """Adds rows to ``table``, which has the rows' columns; with ``key``, columns with a unique index, a row
    replaces the one with its key.

    Exactly once: a batch's rows wait beside the checkpoint until it counts, then go in with its number,
    which is kept in the table ``penstock_batches``, in one transaction. With ``at_once`` they go in as they
    come, at least once; without a checkpoint there is nothing else.

    >>> Postgres("per_lane", dsn="host=127.0.0.1 dbname=cars", key="lane").batch_guarantee
    'exactly once: a batch is one transaction, sent when the batch counts'
    """

    def __init__(
        self,
        table: str,
        *,
        dsn: str,
        password: Env | None = None,
        key: str | Sequence[str] = (),
        at_once: bool = False,
        connect_seconds: float = 10.0,
    ) -> None:
        if not all(table.split(".")) or table.count(".") > 1:
            raise QueryError("not a table", detail=f"got {table!r}", hint="'table' or 'schema.table'")
        self._server = PostgresServer(dsn, password, connect_seconds)
        self._table, self._at_once = table, at_once
        self._key = (key,) if isinstance(key, str) else tuple(key)

    @property
    def guarantee(self) -> str:
        return "at least once: a run that starts again writes again from the beginning"

    @property
    def batch_guarantee(self) -> str:
        if self._at_once:
            return super().batch_guarantee
        return "exactly once: a batch is one transaction, sent when the batch counts"

    def open(self, schema: Schema) -> Writer:
        if not self._at_once:
            raise RunError(
                f"rows for table '{self._table}' could come twice: without a checkpoint nobody knows what "
                "was written; give at_once=True, which promises at least once, or run with a checkpoint"
            )
        table, connection = self._opened(schema)
        return _AtOnceRows(self._server, table, connection)

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        if self._at_once:
            return super().open_batches(schema, resumed)
        table, connection = self._opened(schema)
        return _PostgresBatches(self._server, table, connection, resumed)

    def _opened(self, schema: Schema) -> tuple[TargetTable, Connection]:
        missing = [name for name in self._key if name not in schema]
        if missing:
            columns = ", ".join(schema.names)
            raise RunError(f"the rows lack the key '{missing[0]}': they have {columns}")
        table, connection = TargetTable(self._table, self._key, schema), self._server.connect()
        try:
            table.check(self._server, connection)
        except BaseException:
            connection.close()
            raise
        return table, connection


class _AtOnceRows(Writer):
    def __init__(self, server: PostgresServer, table: TargetTable, connection: Connection) -> None:
        self._server, self._table, self._connection = server, table, connection

    def write(self, batch: pa.RecordBatch) -> None:
        try:
            with self._connection.transaction():
                self._table.write(self._connection, pa.Table.from_batches([batch]))
        except psycopg.Error as error:
            raise self._server.error(error) from None

    def close(self, complete: bool) -> None:
        self._connection.close()


class _PostgresBatches(StagedBatches):
    def __init__(
        self,
        server: PostgresServer,
        table: TargetTable,
        connection: Connection,
        resumed: Resumed | None,
    ) -> None:
        super().__init__("postgres", f"table '{table.name}'", resumed)
        self._server, self._table, self._connection = server, table, connection
        self._name, self._fence = "", -1

    def take_over(self, name: str) -> int:
        def number() -> tuple[int, int]:
            self._connection.execute(_MAKE)
            row = self._connection.execute(_TAKE_OVER, (name,)).fetchone()
            assert row is not None
            return row[0], row[1]

        batch, self._fence = self._asked(number)
        self._name = name
        return batch

    def send(self, batch_id: int, rows: pa.Table) -> None:
        def both() -> None:
            with self._connection.transaction():
                # The row is locked from here on: two runs are never at it side by side.
                taken = self._connection.execute(_COUNT, (batch_id, self._name, self._fence, batch_id))
                if taken.rowcount != 1:
                    raise RunError(
                        f"another run writes to table '{self._table.name}' with this checkpoint and has "
                        "taken over"
                    )
                self._table.write(self._connection, rows)

        self._asked(both)

    def close(self, complete: bool) -> None:
        self._connection.close()

    def _asked(self, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except psycopg.Error as error:
            raise self._server.error(error) from None
