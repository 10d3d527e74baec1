"""A PostgreSQL server of its own, from the packages that ``make setup`` installs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from lab.brokers.server import Server, ServerError, free_ports

USER = "penstock"
#: The user who runs the server where we are root, which PostgreSQL refuses; its package makes him.
_OTHER_USER = "postgres"
_INITDB = ("-U", USER, "-A", "scram-sha-256", "--no-sync", "-E", "UTF8", "--locale", "C")


@dataclass(frozen=True)
class Database:
    """A server that runs; ``dsn`` says where, without the password."""

    dsn: str
    password: str

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.dsn, password=self.password, autocommit=True)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query gives."""
        with self.connect() as connection:
            return connection.execute(query.encode()).fetchall()


@contextmanager
def postgres_server(password: str | None = None) -> Iterator[Database]:
    """A running server with an empty database; all that it wrote is gone afterwards. None: any password."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="penstock-postgres-"))
    (port,) = free_ports(1)
    password = password or os.urandom(12).hex()
    data, secret = folder / "data", folder / "password"
    secret.write_text(password)
    options: dict[str, Any] = {"cwd": folder}
    if os.geteuid() == 0:
        for path in (folder, secret):
            shutil.chown(path, _OTHER_USER, _OTHER_USER)
        options |= {"user": _OTHER_USER, "group": _OTHER_USER, "extra_groups": []}
    database = Database(f"host=127.0.0.1 port={port} user={USER} dbname=postgres", password)
    try:
        made = subprocess.run(
            [programs / "initdb", "-D", data, *_INITDB, "--pwfile", secret],
            capture_output=True,
            text=True,
            check=False,
            **options,
        )
        if made.returncode:
            raise ServerError(f"PostgreSQL cannot make its folder: {made.stderr}")
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(port), "-h", "127.0.0.1"]
        # A crash of the machine would be the end of the test anyway.
        server = Server("PostgreSQL", [*command, "-k", str(folder), "-F"], folder / "log", **options)
        try:
            server.wait_for(lambda: _answers(database))
            yield database
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(database: Database) -> bool:
    try:
        database.connect().close()
    except psycopg.OperationalError:
        return False
    return True


def _programs() -> Path:
    """Debian keeps the server's programs out of the path, a folder per version."""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    on_path = shutil.which("initdb")
    if on_path is not None:
        homes.append(Path(on_path).resolve().parent)
    for home in reversed(homes):
        if (home / "initdb").exists() and (home / "postgres").exists():
            return home
    raise ServerError("PostgreSQL is not installed: run make setup")
