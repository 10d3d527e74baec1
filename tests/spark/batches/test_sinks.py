"""Sinks on the driver: any Spark writer, the order of delivery, and failures told in one line."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import unix_micros

import penstock as ps
from penstock.checkpoints.writers import begin_writers, close_writers, deliver, open_writers
from penstock.connectors.writer import BatchWriter
from penstock.memory.arrow import arrow_schema
from penstock.query.connectors import Sink
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema
from penstock.spark.batches.sinks import SparkWrite
from tests.connectors.batches import begun

SCHEMA = Schema(ts="timestamp", lane="string?", cars="int64")
ROWS: list[dict[str, Any]] = [
    {"ts": -1, "lane": "left", "cars": 3},
    {"ts": 1_700_000_000_250_001, "lane": None, "cars": 2**60},
    {"ts": 4_000_000_000_000_000, "lane": "é", "cars": 0},
]


def table(rows: list[dict[str, Any]] = ROWS) -> pa.Table:
    parts = [pa.Table.from_pylist([row], arrow_schema(SCHEMA)) for row in rows]
    return pa.concat_tables(parts)


class Listed(BatchWriter):
    """Notes what happens to it; fails where told."""

    def __init__(self, name: str, events: list[Any], error: Exception | None = None) -> None:
        self._name, self._events, self._error = name, events, error

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        if self._error is not None:
            raise self._error
        self._events.append((self._name, batch_id, rows.num_rows))

    def close(self, complete: bool) -> None:
        self._events.append((self._name, complete))
        if self._error is not None:
            raise self._error


# -- any Spark writer ------------------------------------------------------------------


def micros(df: DataFrame) -> list[dict[str, Any]]:
    rows = df.withColumn("ts", unix_micros("ts")).collect()
    return [row.asDict() for row in rows]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_write_gets_the_rows_as_a_data_frame(spark: SparkSession, zone: str) -> None:
    got: list[Any] = []

    def write(df: DataFrame, batch_id: int) -> None:
        got.append((batch_id, df.schema.simpleString(), micros(df)))

    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        begun(ps.sinks.Spark(write), SCHEMA).write_batch(5, table())
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert got == [(5, "struct<ts:timestamp,lane:string,cars:bigint>", ROWS)]


def test_any_spark_writer_is_a_sink(spark: SparkSession, tmp_path: Path) -> None:
    def write(df: DataFrame, batch_id: int) -> None:
        df.write.mode("overwrite").parquet(str(tmp_path / f"batch={batch_id}"))

    writer = begun(SparkWrite(write), SCHEMA)
    for batch_id in (0, 1, 1):
        writer.write_batch(batch_id, table(ROWS[: batch_id + 1]))
    back = spark.read.parquet(str(tmp_path)).orderBy("batch", "ts").collect()
    assert [(row.batch, row.cars) for row in back] == [(0, 3), (1, 3), (1, 2**60)]
    assert back[2].ts.astimezone(UTC) == datetime(2023, 11, 14, 22, 13, 20, 250_001, UTC)


def test_a_write_runs_inside_a_streaming_batch(spark: SparkSession, tmp_path: Path) -> None:
    got: list[Any] = []
    writer = begun(SparkWrite(lambda df, batch_id: got.append((batch_id, micros(df)))), SCHEMA)

    def batch(df: DataFrame, batch_id: int) -> None:
        deliver({"q": writer}, batch_id, {"q": table()})

    stream = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    query = (
        stream.writeStream.foreachBatch(batch)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)
    query.stop()
    assert query.exception() is None
    assert got[0] == (0, ROWS)


def test_a_spark_sink_does_not_run_on_a_node() -> None:
    app = ps.App("none")
    numbers = app.source("n", ps.sources.Rows([{"ts": 1}], Schema(ts="timestamp")), event_time="ts")
    app.sink("out", numbers, ps.sinks.Spark(print))
    with pytest.raises(RunError, match=r"ps.Node does not have; run the app on Spark"):
        app.run(on=ps.Node(workers=1))


def test_a_spark_sink_needs_a_function() -> None:
    with pytest.raises(QueryError, match="needs a function: got str"):
        SparkWrite("table")  # type: ignore[arg-type]


# -- delivery --------------------------------------------------------------------------


def test_rows_are_delivered_in_the_order_of_the_queries_and_empty_ones_are_not() -> None:
    events: list[Any] = []
    writers = {name: Listed(name, events) for name in ("b", "a", "c", "d")}
    rows = {"d": table(ROWS[:2]), "c": table().slice(0, 0), "b": table(ROWS[:1])}
    assert deliver(writers, 4, rows) == 3
    assert events == [("b", 4, 1), ("d", 4, 2)]


def test_a_failing_sink_is_one_error_with_query_and_batch() -> None:
    events: list[Any] = []
    cause = ValueError("disk full\n\tat some.java.Class\n\tat another")
    writers = {"a": Listed("a", events), "b": Listed("b", events, cause), "c": Listed("c", events)}
    with pytest.raises(RunError) as failed:
        deliver(writers, 17, dict.fromkeys("abc", table()))
    assert str(failed.value) == "sink of query 'b' failed in batch 17: ValueError: disk full"
    assert failed.value.__cause__ is cause
    assert events == [("a", 17, 3)]


def test_files_are_written_side_by_side_and_the_first_failure_in_order_is_told(tmp_path: Path) -> None:
    names = [f"q{number:02}" for number in range(20)]
    sinks: dict[str, tuple[Sink, Schema]] = {
        name: (ps.sinks.JsonLines(tmp_path / name), SCHEMA) for name in names
    }
    memory = ps.sinks.Memory()
    writers = open_writers({**sinks, "rows": (memory, SCHEMA)}, None)
    begin_writers(writers)
    assert deliver(writers, 0, dict.fromkeys(writers, table())) == 63
    assert len({(tmp_path / name).read_text() for name in names}) == 1
    assert memory.rows() == ROWS

    failing = dict(writers)
    for name in ("q07", "q11"):
        failing[name] = Listed(name, [], OSError(f"{name} is gone"))
        failing[name].side_by_side = True
    with pytest.raises(RunError, match="sink of query 'q07' failed in batch 1: OSError: q07 is gone"):
        deliver(failing, 1, dict.fromkeys(writers, table()))
    deliver(writers, 1, dict.fromkeys(writers, table()))
    close_writers(writers, complete=True)
    assert {(tmp_path / name).read_text().count("\n") for name in names} == {6}
    assert memory.rows() == ROWS * 2


def test_a_failing_spark_write_is_told_in_one_line(spark: SparkSession) -> None:
    unknown = begun(SparkWrite(lambda df, _: df.select("speed")), SCHEMA)
    with pytest.raises(
        RunError, match=r"^sink of query 'q' failed in batch 3: AnalysisException: .*speed"
    ) as a:
        deliver({"q": unknown}, 3, {"q": table()})
    format_ = begun(SparkWrite(lambda df, _: df.write.format("no.such").save("x")), SCHEMA)
    with pytest.raises(RunError, match=r"^sink of query 'q' failed in batch 3: .*no.such") as b:
        deliver({"q": format_}, 3, {"q": table()})
    assert "\n" not in f"{a.value}{b.value}"


def test_rows_of_a_query_without_a_sink_are_an_error() -> None:
    with pytest.raises(RunError, match="batch 1 has rows of query 'q', which has no sink"):
        deliver({}, 1, {"q": table()})


# -- opening and closing ---------------------------------------------------------------


def test_all_sinks_are_opened_or_none(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    memory, full = ps.sinks.Memory(), ps.sinks.Parquet(tmp_path / "full")
    with pytest.raises(RunError, match=r"^sink of query 'b' cannot be opened: folder .* is not empty"):
        open_writers({"a": (memory, SCHEMA), "b": (full, SCHEMA)}, None)
    writers = open_writers({"a": (memory, SCHEMA)}, None)  # it was closed again
    begin_writers(writers)
    deliver(writers, 0, {"a": table()})
    close_writers(writers, complete=True)
    assert memory.rows() == ROWS


def test_a_sink_that_takes_no_batches_is_an_error() -> None:
    class Strange(Sink):
        @property
        def guarantee(self) -> str:
            return "none"

    with pytest.raises(RunError, match="'q' cannot run on Spark or with a checkpoint: Strange takes no"):
        open_writers({"q": (Strange(), SCHEMA)}, None)


def test_all_are_closed_and_a_failure_is_told_if_nothing_else_failed() -> None:
    events: list[Any] = []
    writers = {"a": Listed("a", events, OSError("gone")), "b": Listed("b", events)}
    with pytest.raises(RunError, match="sink of query 'a' cannot be closed: OSError: gone"):
        close_writers(writers, complete=True)
    close_writers(writers, complete=False)
    assert events == [("a", True), ("b", True), ("a", False), ("b", False)]
