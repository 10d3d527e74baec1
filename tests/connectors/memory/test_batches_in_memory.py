"""Memory, console, callback and discard, batch by batch; and a sink that knows nothing of batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.writer import NodeSink, Resumed, Writer, whole_batch
from penstock.query.errors import RunError
from penstock.query.types import Schema
from penstock.sinks import Callback, Console, Csv, Discard, JsonLines, Memory, Parquet, Spark
from tests.connectors.batches import ROWS, SCHEMA, batch, begun


def table(rows: list[dict[str, Any]] = ROWS) -> pa.Table:
    """In two chunks, as rows of two tasks come."""
    return pa.Table.from_batches([batch(rows[:1]), batch(rows[1:])])


def test_memory_replaces_a_batch_that_comes_again() -> None:
    sink = Memory()
    writer = begun(sink)
    writer.write_batch(0, table(ROWS[:1]))
    writer.write_batch(3, table(ROWS))
    writer.write_batch(3, table(ROWS[1:]))
    assert sink.rows() == ROWS
    assert len(sink) == 3


def test_memory_keeps_what_counted_when_a_run_goes_on_in_the_process() -> None:
    sink = Memory()
    first = begun(sink)
    first.write_batch(0, table(ROWS[:1]))
    first.write_batch(1, table(ROWS))
    first.close(False)
    again = sink.open_batches(SCHEMA, Resumed(1, first.delivered()))
    assert len(sink) == 1 + len(ROWS)  # nothing is touched yet
    again.begin()
    assert sink.rows() == ROWS[:1]
    again.write_batch(1, table(ROWS[2:]))
    assert sink.rows() == [ROWS[0], ROWS[2]]
    with pytest.raises(RunError, match="in use already"):
        sink.open_batches(SCHEMA, Resumed(2, None))
    again.close(True)


@pytest.mark.parametrize("resumed_from", [None, 0, 5])
def test_memory_starts_empty_in_a_new_run_or_with_other_columns(resumed_from: int | None) -> None:
    sink = Memory()
    writer = begun(sink)
    writer.write_batch(2, table())
    writer.close(True)
    resumed = None if resumed_from is None else Resumed(resumed_from, {"kind": "memory"})
    begun(sink, Schema(x="int64") if resumed_from else SCHEMA, resumed)
    assert sink.rows() == []


def test_console_shows_a_batch_as_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    writer = begun(Console(limit=2))
    writer.write_batch(4, table())
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 4
    assert out[-1] == "… and 1 more"


def test_a_callback_is_called_once_a_batch_and_given_its_number_if_it_takes_one() -> None:
    got: list[Any] = []

    def plain(rows: Any) -> None:
        got.append(rows)

    def numbered(rows: Any, number: int) -> None:
        got.append((rows, number))

    def named(rows: Any, batch_id: int | None = None) -> None:
        got.append((rows, batch_id))

    def remembers(rows: Any, out: list[Any] = got) -> None:
        out.append(rows)

    def many(*rows: Any) -> None:
        got.append(rows)

    for function in (plain, numbered, named, remembers, many, got.append):
        begun(Callback(function)).write_batch(7, table())
    assert got == [ROWS, (ROWS, 7), (ROWS, 7), ROWS, (ROWS,), ROWS]


def test_a_callback_gets_a_batch_in_the_form_it_asked_for() -> None:
    got: list[Any] = []
    begun(Callback(got.append, arrow=True)).write_batch(1, table())
    begun(Callback(lambda columns, number: got.append(columns), numpy=True)).write_batch(1, table())
    assert got[0] == batch()
    assert got[1]["cars"].tolist() == [3, -1, 0]


def test_a_callback_that_needs_a_number_does_not_run_on_a_node() -> None:
    with pytest.raises(RunError, match=r"only Spark has.*write number=None"):
        Callback(lambda rows, number: None).open(SCHEMA)
    got: list[Any] = []

    def named(rows: Any, batch_id: int | None = None) -> None:
        got.append(batch_id)

    Callback(named).open(SCHEMA).write(batch())
    assert got == [None]


def test_discard_counts_a_batch_once() -> None:
    sink = Discard()
    writer = begun(sink, SCHEMA, Resumed(5, None))
    for number in (5, 6, 6, 8):
        writer.write_batch(number, table())
    assert sink.count == 9


class Plain(NodeSink):
    """A sink that somebody wrote for the node runtime."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    @property
    def guarantee(self) -> str:
        return "none at all"

    def open(self, schema: Schema) -> Writer:
        got = self.got

        class Listed(Writer):
            def write(self, batch: pa.RecordBatch) -> None:
                got.append(batch.num_rows)

            def close(self, complete: bool) -> None:
                got.append(complete)

        return Listed()


def test_a_sink_that_knows_nothing_of_batches_gets_their_rows() -> None:
    sink = Plain()
    writer = sink.open_batches(SCHEMA, Resumed(3, None))
    writer.close(False)
    assert sink.got == []  # not even opened
    writer.begin()
    writer.write_batch(3, table())
    writer.close(True)
    assert sink.got == [1, 2, True]
    assert sink.batch_guarantee.startswith("at least once")


def test_rows_without_columns_are_still_rows() -> None:
    empty: Any = pa.array([{}] * 3, pa.struct([]))
    rows = pa.Table.from_batches([pa.RecordBatch.from_struct_array(empty)])
    assert whole_batch(rows).num_rows == 3


def test_every_sink_states_what_it_promises_on_spark() -> None:
    exactly = [Memory(), Parquet("x"), Csv("x"), JsonLines("x")]
    assert all(sink.batch_guarantee.startswith("exactly once") for sink in exactly)
    at_least = [Console(), Callback(print), Spark(print)]
    assert all(sink.batch_guarantee.startswith("at least once") for sink in at_least)
    assert Discard().batch_guarantee == "nothing is kept"


def test_every_sink_says_what_it_is(tmp_path: Path) -> None:
    sinks = {
        "memory": Memory(),
        "console": Console(),
        "callback": Callback(print),
        "discard": Discard(),
        "spark": Spark(print),
        "csv": Csv(tmp_path / "out.csv"),
        "json_lines": JsonLines(tmp_path / "out.jsonl"),
        "parquet": Parquet(tmp_path / "out"),
        "Plain": Plain(),
    }
    assert list(sinks) == [sink.open_batches(SCHEMA, None).delivered()["kind"] for sink in sinks.values()]
