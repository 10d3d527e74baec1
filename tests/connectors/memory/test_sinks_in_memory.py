"""Memory, console, callback and discard."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.memory.arrow import batch_from_columns, write_batch
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema
from penstock.sinks import Callback, Console, Csv, Discard, JsonLines, Memory, Parquet
from tests.connectors.batches import ROWS, SCHEMA, batch


def test_memory_gives_rows_and_a_table_also_while_it_is_written() -> None:
    sink = Memory()
    assert sink.rows() == []
    writer = sink.open(SCHEMA)
    assert sink.rows() == []
    assert sink.table().schema.names == list(SCHEMA.names)
    writer.write(batch(ROWS[:1]))
    assert sink.rows() == ROWS[:1]
    writer.write(batch(ROWS[1:]))
    writer.close(True)
    assert sink.rows() == ROWS
    assert len(sink) == 3
    assert sink.table().schema.field("ts").type == pa.timestamp("us", tz="UTC")


def test_memory_starts_empty_in_a_new_run_and_serves_one_step_at_a_time() -> None:
    sink = Memory()
    writer = sink.open(SCHEMA)
    writer.write(batch())
    with pytest.raises(RunError, match=r"in use already.*Memory\(\) of its own"):
        sink.open(SCHEMA)
    writer.close(False)
    sink.open(SCHEMA)
    assert sink.rows() == []


def test_console_prints_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    writer = Console(limit=2, title="per lane").open(SCHEMA)
    writer.write(batch())
    assert capsys.readouterr().out.splitlines() == [
        "per lane",
        "ts                           lane  cars  speed  free",
        "1970-01-01T00:00:00.000000Z  left     3  12.25  True",
        "2023-11-14T22:13:20.250000Z  null    -1   null  False",
        "… and 1 more",
    ]


def test_console_lets_no_control_codes_through(capsys: pytest.CaptureFixture[str]) -> None:
    schema = Schema(s="string")
    Console().open(schema).write(batch([{"s": "\x1b[2J"}, {"s": "y" * 100}], schema))
    out = capsys.readouterr().out.splitlines()
    assert out[1:] == ["�[2J", "y" * 59 + "…"]


def test_a_callback_gets_rows() -> None:
    got: list[Any] = []
    Callback(got.append).open(SCHEMA).write(batch())
    assert got == [ROWS]


def test_a_callback_gets_arrow_batches() -> None:
    got: list[Any] = []
    Callback(got.append, arrow=True).open(SCHEMA).write(batch())
    assert got == [batch()]


def test_a_callback_gets_numpy_columns_without_a_detour_where_there_are_no_strings() -> None:
    schema = Schema(ts="timestamp", x="float64?")
    layout = Layout(schema)
    columns = layout.allocate(5)
    rows = [{"ts": i, "x": None if i == 3 else i / 2} for i in range(5)]
    write_batch(batch(rows, schema), 0, 5, layout, columns, 0, StringPool())
    got: list[Any] = []
    writer = Callback(got.append, numpy=True).open(schema)
    assert writer.takes_columns
    writer.write_columns(columns, 1, 5, layout)
    writer.write(batch_from_columns(columns, 1, 5, layout, StringPool()))
    for arrays in got:
        assert arrays["ts"].tolist() == [1, 2, 3, 4]
        assert arrays["x"].tolist() == [0.5, 1.0, None, 2.0]
        assert isinstance(arrays["x"], np.ma.MaskedArray)


def test_a_callback_gets_strings_as_text_in_numpy_columns() -> None:
    got: list[Any] = []
    writer = Callback(got.append, numpy=True).open(SCHEMA)
    assert not writer.takes_columns
    writer.write(batch())
    assert got[0]["lane"].tolist() == ["left", None, 'a,"b" é']


def test_what_a_callback_raises_comes_through() -> None:
    def fail(rows: list[dict[str, Any]]) -> None:
        raise LookupError(rows[0]["cars"])

    with pytest.raises(LookupError, match="3"):
        Callback(fail).open(SCHEMA).write(batch())


def test_a_callback_must_be_a_function_with_one_form_of_rows() -> None:
    with pytest.raises(QueryError, match="must be a function"):
        Callback(3)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="one form"):
        Callback(print, arrow=True, numpy=True)


def test_discard_counts() -> None:
    sink = Discard()
    writer = sink.open(SCHEMA)
    assert writer.takes_columns
    writer.write(batch())
    layout = Layout(SCHEMA)
    writer.write_columns(layout.allocate(9), 2, 7, layout)
    writer.close(True)
    assert sink.count == 8


def test_every_sink_states_its_guarantee() -> None:
    sinks = [Memory(), Console(), Callback(print), Discard(), Parquet("x"), Csv("x"), JsonLines("x")]
    assert all(len(sink.guarantee) > 10 for sink in sinks)


def test_results_as_tables_of_other_libraries_and_back() -> None:
    app, result, again = ps.App("tables"), ps.sinks.Memory(), ps.sinks.Memory()
    schema = {"ts": "timestamp", "name": "string?", "x": "float64?"}
    rows = [{"ts": 1_000_000, "name": "a", "x": 0.5}, {"ts": 2_000_000}]
    app.sink("out", app.source("in", ps.sources.Rows(rows, schema), event_time="ts"), result)
    app.run(on=ps.Node(workers=1))
    table, pandas, polars = result.to_arrow(), result.to_pandas(), result.to_polars()
    moments = [datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC) for second in (1, 2)]
    assert table.column("ts").to_pylist() == list(pandas["ts"]) == list(polars["ts"]) == moments
    assert table.column("name").to_pylist() == list(polars["name"]) == ["a", None]
    for number, frame in enumerate((table, pandas, polars)):
        copy = ps.App("again")
        copy.sink("out", copy.source("in", ps.sources.Columns(frame, schema), event_time="ts"), again)
        copy.run(on=ps.Node(workers=1))
        assert again.to_arrow() == table, number
