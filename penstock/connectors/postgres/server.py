"""Where a PostgreSQL database is: a connection string without the password."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from penstock.query.environment import Env
from penstock.query.errors import QueryError, RunError

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class PostgresServer:
    """``dsn`` as libpq knows it, ``host=db.example user=penstock dbname=shop`` or a URI."""

    dsn: str
    password: Any = None  # an ``Env``, or None where none is asked for
    patience_s: float = 10.0

    def __post_init__(self) -> None:
        hint = "leave it out and give password=ps.env('DB_PASSWORD')"
        if not isinstance(self.password, Env | None):
            raise QueryError("a secret stands in the environment, not in the program", hint=hint)
        try:
            known = conninfo_to_dict(self.dsn)
        except psycopg.Error as error:
            raise QueryError("not a connection string of PostgreSQL", detail=_line(error)) from None
        if "password" in known:
            raise QueryError(
                "a secret stands in the environment, not in the program",
                detail="the connection string has a password",
                hint=hint,
            )
        if self.patience_s <= 0:
            raise QueryError("connect_seconds must be positive", detail=f"got {self.patience_s}")

    def __str__(self) -> str:
        known = conninfo_to_dict(self.dsn)
        place = f"{known.get('host', 'this machine')}:{known.get('port', 5432)}"
        return f"the PostgreSQL database '{known.get('dbname', '')}' at {place}"

    def connect(self) -> Connection:
        """A connection on which each statement counts by itself, unless a transaction says otherwise."""
        secret: dict[str, Any] = {} if self.password is None else {"password": self.password.value}
        seconds = max(1, round(self.patience_s))
        try:
            return psycopg.connect(self.dsn, autocommit=True, connect_timeout=seconds, **secret)
        except psycopg.Error as error:
            raise RunError(f"cannot connect to {self}: {_line(error)}") from None

    def error(self, error: psycopg.Error) -> RunError:
        """What went wrong, in a line."""
        return RunError(f"{self} refused: {_line(error)}")


def _line(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0]
