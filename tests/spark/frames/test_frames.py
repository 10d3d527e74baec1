"""DataFrames and Spark's formats as sources: their schemas, their frames, and what they refuse."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock as ps
from penstock.operators.run.plan import plan
from penstock.operators.run.projections import without_plain_projections
from penstock.query.errors import QueryError
from penstock.query.types import Schema
from penstock.spark.frames.formats import SparkFormat
from penstock.spark.frames.streams import FrameSource, SparkStream
from penstock.spark.frames.types import schema_of, struct_of
from penstock.spark.native.prefix import REASON, RECORD, Prefix, plan_prefix
from penstock.spark.session.errors import SparkError


def rate(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load()


def read_all(
    spark: SparkSession, source: FrameSource, folder: Path
) -> tuple[Prefix, list[dict[str, Any]], list[Any]]:
    """All that is there, through a query of its own: rows, and the bad records."""
    app = ps.App("frames")
    stream = app.source("in", source, event_time="ts")
    app.sink("out", stream, ps.sinks.Memory())
    app.sink("bad", stream.bad_records(), ps.sinks.Memory())
    graph = without_plain_projections(app.graph())
    prefix = plan_prefix(graph, graph["in"], plan(graph))
    rows: list[dict[str, Any]] = []
    seen: list[Any] = []

    def take(batch: DataFrame, _: int) -> None:
        rows.extend(row.asDict() for row in prefix.apply(batch).collect())
        if REASON in batch.columns:
            seen.extend((row[REASON], row[RECORD]) for row in batch.collect() if row[REASON] is not None)

    query = (
        prefix.prune(source.frame(spark))
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return prefix, rows, seen


# -- DataFrames ----------------------------------------------------------------------------------------------


def test_spark_types_become_ours(spark: SparkSession) -> None:
    df = rate(spark).selectExpr(
        "true as a",
        "cast(value as tinyint) as b",
        "cast(value as smallint) as c",
        "cast(value as int) as d",
        "value as e",
        "cast(value as float) as f",
        "cast(value as double) as g",
        "cast(value as string) as h",
        "timestamp as i",
        "cast(timestamp as timestamp_ntz) as j",
        "cast(timestamp as date) as k",
    )
    source = SparkStream(df, ordered=True, bounded=True)
    assert source.schema == Schema(
        a="bool", b="int32?", c="int32?", d="int32?", e="int64?", f="float32?", g="float64?", h="string?",
        i="timestamp?", j="timestamp?", k="timestamp?",
    )  # fmt: skip
    assert source.ordered
    assert source.bounded
    frame = source.frame(spark)
    assert frame.isStreaming
    assert schema_of(frame.schema) == source.schema
    kinds = [field.dataType.simpleString() for field in frame.schema]
    assert kinds == ["boolean", *["int"] * 3, "bigint", "float", "double", "string", *["timestamp"] * 3]


def test_dates_and_times_without_a_zone_are_utc(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(
        "select timestamp_ntz'1969-12-31 23:59:59.5' as ts, date'1969-12-31' as day, 'x' as `a.b``c`"
    ).write.parquet(str(tmp_path / "in"))
    struct = spark.read.parquet(str(tmp_path / "in")).schema
    source = SparkStream(spark.readStream.schema(struct).parquet(str(tmp_path / "in")))
    _, rows, _ = read_all(spark, source, tmp_path / "checkpoint")
    (row,) = rows
    assert row["ts"].astimezone(UTC) == datetime(1969, 12, 31, 23, 59, 59, 500_000, UTC)
    assert row["day"].astimezone(UTC) == datetime(1969, 12, 31, tzinfo=UTC)
    assert row["a.b`c"] == "x"


def test_a_static_frame_is_refused(spark: SparkSession) -> None:
    with pytest.raises(QueryError, match=r"not a stream: it has the columns id; .*readStream"):
        SparkStream(spark.range(3))
    with pytest.raises(QueryError, match="not a DataFrame: got a list"):
        SparkStream([1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("array(value) as xs", r"column 'xs' has a type .* Spark type array<bigint>; leave it out"),
        ("cast(value as decimal(9, 2)) as price", r"column 'price' .* decimal\(9,2\)"),
        ("binary(string(value)) as raw", "column 'raw' .* binary"),
        (
            "string(value) collate UNICODE_CI as town",
            "column 'town' has a collation: it compares as UNICODE_CI",
        ),
        ("value as `$late`", r"column name '\$late' is reserved"),
    ],
)
def test_columns_that_do_not_fit_are_named(spark: SparkSession, column: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        SparkStream(rate(spark).selectExpr("timestamp", column))


def test_the_event_time_is_never_null_in_the_stream(spark: SparkSession) -> None:
    source = SparkStream(rate(spark))
    stream = ps.App("a").source("rate", source, event_time="timestamp")
    assert stream.schema == Schema(timestamp="timestamp", value="int64?")
    with pytest.raises(QueryError, match="unknown column 'time'"):
        ps.App("a").source("rate", source, event_time="time")
    with pytest.raises(QueryError, match="must be a timestamp"):
        ps.App("a").source("rate", source, event_time="value")


def test_another_meaning_of_expressions_is_refused(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(SparkError, match=r"spark\.sql\.ansi\.enabled is true; set it to false"):
        SparkStream(rate(other)).frame(spark)


def test_the_node_runtime_says_that_it_needs_spark() -> None:
    app = ps.App("a")
    app.sink("out", app.source("rate", SparkFormat("rate"), event_time="timestamp"), ps.sinks.Memory())
    with pytest.raises(
        QueryError, match="cannot be read without Spark: step 'rate' is a SparkFormat; run the app on"
    ):
        app.run(on=ps.Node())


# -- formats -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "schema"),
    [
        (SparkFormat("rate", rowsPerSecond=5), Schema(timestamp="timestamp", value="int64")),
        (SparkFormat("rate-micro-batch", rowsPerBatch=5), Schema(timestamp="timestamp", value="int64")),
        (
            SparkFormat("socket", host="127.0.0.1", port=1, includeTimestamp=True),
            Schema(value="string", timestamp="timestamp"),
        ),
    ],
)
def test_formats_with_a_schema_of_their_own(spark: SparkSession, source: SparkFormat, schema: Schema) -> None:
    assert source.schema == schema
    frame = source.frame(spark)
    assert frame.isStreaming
    kinds = [field.dtype for field in schema]
    assert [field.dtype for field in schema_of(frame.schema)] == kinds
    assert source.checked("timestamp") == ()


def test_kafka_without_its_package_says_what_to_do(spark: SparkSession) -> None:
    source = SparkFormat("kafka", **{"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "cars"})
    assert source.schema.names[:3] == ("key", "value", "topic")
    with pytest.raises(
        SparkError, match=r"no Kafka connector; .*spark\.jars\.packages=org\.apache\.spark:spark-sql-kafka"
    ):
        source.frame(spark)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "delta"}, r"unknown format: got 'delta'; .*ps\.sources\.Spark"),
        ({"format": "parquet", "path": "x"}, "format 'parquet' needs a schema"),
        ({"format": "parquet", "schema": {"ts": "timestamp"}}, "format 'parquet' needs a path"),
        ({"format": "rate", "path": "x"}, "format 'rate' has no path"),
        ({"format": "rate", "schema": {"ts": "timestamp"}}, "has a schema of its own"),
        ({"format": "csv", "schema": {"ts": "time"}, "path": "x"}, "unknown type 'time'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        SparkFormat(**arguments)


def test_a_missing_folder_is_named(spark: SparkSession, tmp_path: Path) -> None:
    source = SparkFormat("parquet", {"ts": "timestamp"}, tmp_path / "nowhere")
    with pytest.raises(SparkError, match=r"cannot read format 'parquet': .*nowhere"):
        source.frame(spark)


FIELDS = {"ts": "timestamp", "speed": "float64", "note": "string?"}


def test_json_records_that_do_not_fit_are_bad_records(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    good = {"ts": "1970-01-01T00:00:05Z", "speed": 2.5, "note": "fine"}
    lines = [json.dumps(good), '{"ts": oops', json.dumps({**good, "speed": None}), json.dumps({"speed": 1.0})]
    (folder / "a.json").write_text("\n".join(lines))
    prefix, rows, seen = read_all(spark, SparkFormat("json", FIELDS, folder), tmp_path / "checkpoint")
    assert [(row["speed"], row["note"]) for row in rows] == [(2.5, "fine")]
    assert prefix.reads_bad
    assert [reason for reason, _ in seen] == [
        "Spark cannot parse it",
        "column 'speed' is null",
        "column 'ts' is null",
    ]
    assert seen[0][1] == '{"ts": oops'


def test_csv_and_parquet_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.sql(
        "select timestamp_micros(id * 1000) as ts, id * 0.5d as speed, cast(null as string) as note "
        "from range(20)"
    )
    table.write.parquet(str(tmp_path / "parquet"))
    table.write.option("header", True).csv(str(tmp_path / "csv"))
    found = []
    for kind, options in (("parquet", {}), ("csv", {"header": True})):
        source = SparkFormat(kind, FIELDS, tmp_path / kind, **options)
        _, rows, _ = read_all(spark, source, tmp_path / f"{kind}-checkpoint")
        found.append(sorted((row["ts"], row["speed"], row["note"]) for row in rows))
    assert found[0] == found[1]
    assert len(found[0]) == 20


def test_someone_who_chooses_a_mode_has_chosen(spark: SparkSession, tmp_path: Path) -> None:
    source = SparkFormat("json", FIELDS, tmp_path, mode="DROPMALFORMED")
    assert source.frame(spark).columns == ["ts", "speed", "note"]


def test_schemas_go_to_spark_and_back() -> None:
    schema = Schema(
        a="bool?", b="int32?", c="int64?", d="float32?", e="float64?", f="timestamp?", g="string?"
    )
    assert schema_of(struct_of(schema)) == schema
