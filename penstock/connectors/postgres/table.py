"""A table that takes rows: checked before the run, filled by COPY, or by key through a table of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
import pyarrow as pa
from psycopg import sql

from penstock.connectors.postgres.server import Connection, PostgresServer
from penstock.query.errors import RunError
from penstock.query.types import DataType, Schema

_TYPES = {
    DataType.BOOL: "boolean",
    DataType.INT32: "integer",
    DataType.INT64: "bigint",
    DataType.FLOAT32: "real",
    DataType.FLOAT64: "double precision",
    DataType.STRING: "text",
    DataType.TIMESTAMP: "timestamptz",
}
_STAGED, _NUMBER = sql.Identifier("penstock_staged"), sql.Identifier("penstock_number")


@dataclass(frozen=True)
class TargetTable:
    """``name`` may say its schema, ``"sales.per_lane"``. With ``key`` a row replaces the one with its key."""

    name: str
    key: tuple[str, ...]
    schema: Schema

    def check(self, server: PostgresServer, connection: Connection) -> None:
        """Refuses a table that is not there, or lacks a column."""
        query = sql.SQL("SELECT {} FROM {} LIMIT 0").format(self._columns, self._identifier)
        try:
            connection.execute(query)
        except psycopg.Error as error:
            reason = str(error).strip().partition("\n")[0]
            raise RunError(
                f"{server} cannot take rows: {reason}; a table that fits: {self.definition}"
            ) from None

    @property
    def definition(self) -> str:
        """A statement that makes a table that fits."""
        columns = [
            f'"{field.name}" {_TYPES[field.dtype]}{"" if field.nullable else " NOT NULL"}'
            for field in self.schema
        ]
        if self.key:
            columns.append(f"PRIMARY KEY ({', '.join(f'{name!r}' for name in self.key)})".replace("'", '"'))
        return f"CREATE TABLE {self.name} ({', '.join(columns)})"

    def write(self, connection: Connection, rows: pa.Table) -> None:
        """Adds the rows, in the transaction that is open; of those with one key the last counts."""
        if not self.key:
            self._copy(connection, self._identifier, self._columns, rows.to_pylist())
            return
        connection.execute(
            sql.SQL(
                "CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {}, 0::bigint AS {} FROM {} LIMIT 0"
            ).format(_STAGED, self._columns, _NUMBER, self._identifier)
        )
        numbered = [{**row, "": number} for number, row in enumerate(rows.to_pylist())]
        columns = sql.SQL("{}, {}").format(self._columns, _NUMBER)
        self._copy(connection, _STAGED, columns, numbered)
        key = sql.SQL(", ").join(map(sql.Identifier, self.key))
        others = [name for name in self.schema.names if name not in self.key]
        replaced = sql.SQL(", ").join(
            sql.SQL("{} = EXCLUDED.{}").format(sql.Identifier(name), sql.Identifier(name)) for name in others
        )
        connection.execute(
            sql.SQL(
                "INSERT INTO {target} ({columns}) SELECT DISTINCT ON ({key}) {columns} FROM {staged} "
                "ORDER BY {key}, {number} DESC ON CONFLICT ({key}) DO {action}"
            ).format(
                target=self._identifier,
                columns=self._columns,
                key=key,
                staged=_STAGED,
                number=_NUMBER,
                action=sql.SQL("UPDATE SET {}").format(replaced) if others else sql.SQL("NOTHING"),
            )
        )

    def _copy(
        self,
        connection: Connection,
        target: sql.Composable,
        columns: sql.Composable,
        rows: Sequence[dict[str, object]],
    ) -> None:
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(target, columns)
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(tuple(row.values()))

    @property
    def _identifier(self) -> sql.Identifier:
        return sql.Identifier(*self.name.split("."))

    @property
    def _columns(self) -> sql.Composed:
        return sql.SQL(", ").join(map(sql.Identifier, self.schema.names))
