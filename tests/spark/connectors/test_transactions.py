"""Sinks with transactions on Spark: what counted is there once, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import SparkSession

import penstock as ps
from lab.brokers.kafka import Broker
from lab.brokers.postgres import Database
from tests.connectors.kafka.records import received, topic


def test_batches_are_sent_when_they_count(
    spark: SparkSession, kafka: Broker, postgres: Database, tmp_path: Path
) -> None:
    name = topic(kafka)
    with postgres.connect() as connection:
        connection.execute("CREATE TABLE on_spark (n bigint PRIMARY KEY, ts timestamptz)")

    def run() -> None:
        app = ps.App("copy")
        rows = [{"ts": number, "n": number} for number in range(1_000)]
        given = ps.sources.Rows(rows, {"ts": "timestamp", "n": "int64"})
        numbers = app.source("numbers", given, "ts")
        app.sink("records", numbers, ps.sinks.Kafka(name, servers=kafka.servers, key="n"))
        table = ps.sinks.Postgres(
            "on_spark", dsn=postgres.dsn, password=ps.env("PENSTOCK_TEST_PASSWORD"), key="n"
        )
        app.sink("rows", numbers, table)
        app.run(on=ps.Spark(checkpoint=str(tmp_path / "checkpoint"), batch_events=400))

    for _ in range(2):  # the second finds everything done
        run()
        assert sorted(json.loads(record.value())["n"] for record in received(kafka, name)) == [*range(1_000)]
        assert postgres.rows("SELECT count(*), sum(n) FROM on_spark") == [(1_000, 499_500)]
