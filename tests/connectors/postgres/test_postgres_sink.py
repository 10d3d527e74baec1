"""Rows in tables of a real database: appended or by key, transactions, who writes, and what is refused."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from lab.brokers.postgres import Database
from penstock.connectors.writer import BatchWriter, Resumed
from penstock.memory.arrow import arrow_schema
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema
from penstock.sinks import Postgres

SCHEMA = Schema.of({"lane": "string", "cars": "int64?"})
PASSWORD = ps.env("PENSTOCK_TEST_PASSWORD")
_numbers = itertools.count()


def table(database: Database, columns: str = "lane text, cars bigint") -> str:
    """A table that no other test has."""
    name = f"results_{next(_numbers)}"
    with database.connect() as connection:
        connection.execute(f"CREATE TABLE {name} ({columns})".encode())
    return name


def rows(**cars: int | None) -> pa.Table:
    return pa.Table.from_pylist([{"lane": lane, "cars": n} for lane, n in cars.items()], arrow_schema(SCHEMA))


def sink(database: Database, name: str, **options: Any) -> Postgres:
    return Postgres(name, dsn=database.dsn, password=PASSWORD, **options)


def opened(postgres: Postgres, folder: Path, resumed: Resumed | None = None) -> BatchWriter:
    writer = postgres.open_batches(SCHEMA, resumed)
    writer.stage_in(str(folder))
    writer.begin()
    return writer


def held(database: Database, name: str) -> list[tuple[Any, ...]]:
    return database.rows(f"SELECT * FROM {name} ORDER BY 1, 2")


def test_every_type_comes_in_as_it_is(postgres: Database) -> None:
    name = table(
        postgres, 'ts timestamptz, b boolean, i integer, l bigint, f real, d double precision, "my text" text'
    )
    entry = {
        "ts": 1_700_000_000_250_001,
        "b": True,
        "i": -(2**31),
        "l": 2**63 - 1,
        "f": 0.5,
        "d": float("inf"),
        "my text": "tab\t, line\n, \\N and ä",
    }
    types = {"ts": "timestamp", "b": "bool?", "i": "int32?", "l": "int64?", "f": "float32?", "d": "float64?"}
    source = ps.sources.Rows(
        [entry, dict.fromkeys(entry) | {"ts": 0}], Schema.of({**types, "my text": "string?"})
    )
    app = ps.App("types")
    app.sink("written", app.source("rows", source, "ts"), sink(postgres, name, at_once=True))
    app.run(on=ps.Node())
    first, second = postgres.rows(f"SELECT * FROM {name} ORDER BY ts DESC")
    moment = datetime(2023, 11, 14, 22, 13, 20, 250_001, tzinfo=UTC)
    assert first == (moment, *list(entry.values())[1:])
    assert second == (datetime(1970, 1, 1, tzinfo=UTC), *[None] * 6)


def test_with_a_key_the_last_row_of_a_key_counts(postgres: Database, tmp_path: Path) -> None:
    name = table(postgres, "lane text PRIMARY KEY, cars bigint, note text DEFAULT 'mine'")
    writer = opened(sink(postgres, name, key="lane"), tmp_path)
    doubled = pa.concat_tables([rows(a=1, b=2), rows(a=3, c=None)])
    writer.write_batch(0, doubled)
    writer.counted(0)
    assert held(postgres, name) == [("a", 3, "mine"), ("b", 2, "mine"), ("c", None, "mine")]
    writer.write_batch(1, rows(b=9))
    writer.counted(1)
    assert held(postgres, name)[1] == ("b", 9, "mine")
    writer.close(complete=True)


def test_a_key_of_all_columns_leaves_rows_as_they_are(postgres: Database, tmp_path: Path) -> None:
    name = table(postgres, "lane text, cars bigint, PRIMARY KEY (lane, cars)")
    writer = opened(sink(postgres, name, key=("lane", "cars")), tmp_path)
    for batch in range(2):
        writer.write_batch(batch, rows(a=1, b=2))
        writer.counted(batch)
    assert held(postgres, name) == [("a", 1), ("b", 2)]


def test_a_batch_is_there_when_it_counts_and_once(postgres: Database, tmp_path: Path) -> None:
    name = table(postgres)
    target = sink(postgres, name)
    writer = opened(target, tmp_path)
    writer.write_batch(0, rows(a=1))
    assert held(postgres, name) == []
    writer.counted(0)
    writer.write_batch(1, rows(b=2))  # counted, but the process dies before it could send it
    writer = opened(target, tmp_path, Resumed(2, writer.delivered()))
    assert held(postgres, name) == [("a", 1), ("b", 2)]
    writer.write_batch(2, rows(c=3))  # not counted
    writer = opened(target, tmp_path, Resumed(2, writer.delivered()))
    writer.write_batch(2, rows(d=4))
    writer.counted(2)
    assert held(postgres, name) == [("a", 1), ("b", 2), ("d", 4)]


def test_a_run_that_was_taken_over_can_write_no_more(postgres: Database, tmp_path: Path) -> None:
    name = table(postgres)
    old = opened(sink(postgres, name), tmp_path)
    old.write_batch(0, rows(a=1))
    new = opened(sink(postgres, name), tmp_path)
    with pytest.raises(RunError, match=r"another run writes to table .* and has taken over"):
        old.counted(0)
    new.write_batch(0, rows(b=2))
    new.counted(0)
    assert held(postgres, name) == [("b", 2)]


def test_what_the_database_refuses_leaves_nothing_of_the_batch(postgres: Database, tmp_path: Path) -> None:
    name = table(postgres, "lane text, cars bigint CHECK (cars < 10)")
    writer = opened(sink(postgres, name), tmp_path)
    writer.write_batch(0, rows(a=1, b=20))
    with pytest.raises(RunError, match=r"refused: .*violates check constraint"):
        writer.counted(0)
    assert held(postgres, name) == []
    with postgres.connect() as connection:
        connection.execute(f"ALTER TABLE {name} DROP CONSTRAINT {name}_cars_check".encode())
    opened(sink(postgres, name), tmp_path, Resumed(1, writer.delivered()))
    assert held(postgres, name) == [("a", 1), ("b", 20)]


def test_names_are_never_code(postgres: Database, tmp_path: Path) -> None:
    name = 'x" (lane) VALUES (1); DROP TABLE y; --'
    with postgres.connect() as connection:
        connection.execute('CREATE TABLE "x"" (lane) VALUES (1); DROP TABLE y; --" (lane text, cars bigint)')
    writer = opened(sink(postgres, name), tmp_path)
    writer.write_batch(0, rows(a=1))
    writer.counted(0)
    assert postgres.rows('SELECT * FROM "x"" (lane) VALUES (1); DROP TABLE y; --"') == [("a", 1)]


def test_a_table_that_does_not_fit_is_told_with_one_that_does(postgres: Database) -> None:
    with pytest.raises(RunError) as missing:
        sink(postgres, "nowhere", key="lane").open_batches(SCHEMA, None)
    assert "nowhere" in str(missing.value)
    assert (
        'a table that fits: CREATE TABLE nowhere ("lane" text NOT NULL, "cars" bigint, PRIMARY KEY ("lane"))'
    ) in str(missing.value)
    with pytest.raises(RunError, match='column "cars" does not exist'):
        sink(postgres, table(postgres, "lane text")).open_batches(SCHEMA, None)
    with pytest.raises(RunError, match="the rows lack the key 'street': they have lane, cars"):
        sink(postgres, "nowhere", key="street").open_batches(SCHEMA, None)


def test_without_a_checkpoint_it_must_be_said_that_rows_may_come_twice(postgres: Database) -> None:
    with pytest.raises(RunError, match=r"could come twice.*give at_once=True"):
        sink(postgres, table(postgres)).open(SCHEMA)


def test_passwords_are_named_and_never_shown(postgres: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(QueryError, match="a secret stands in the environment") as plain:
        Postgres("t", dsn="host=127.0.0.1 password=hidden")
    with pytest.raises(QueryError, match="a secret stands in the environment"):
        Postgres("t", dsn="host=127.0.0.1", password="hidden")  # type: ignore[arg-type]
    assert "hidden" not in str(plain.value)
    monkeypatch.setenv("PENSTOCK_TEST_PASSWORD", "another")
    with pytest.raises(
        RunError, match="cannot connect to the PostgreSQL database 'postgres' at 127"
    ) as wrong:
        sink(postgres, "t").open_batches(SCHEMA, None)
    assert "another" not in str(wrong.value)


@pytest.mark.parametrize("name", ["", "a.b.c", ".a"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(QueryError, match="not a table"):
        Postgres(name, dsn="")
