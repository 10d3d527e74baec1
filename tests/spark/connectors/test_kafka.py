"""A Kafka topic read by the tasks of Spark: the rows of a node, and secrets that stay where they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from lab.brokers.kafka import Broker
from penstock.query.errors import RunError
from penstock.sources import Kafka
from tests.connectors.kafka.records import Sent, send, topic

SCHEMA = {"ts": "timestamp", "lane": "string", "speed": "float64"}
SECOND_US = 1_000_000


def values(count: int) -> list[Sent]:
    """Reports of three lanes, out of order, a broken one now and then."""
    return [
        Sent(
            json.dumps({"ts": (n ^ 3) * SECOND_US // 10, "lane": f"lane {n % 3}", "speed": n % 50 / 2})
            if n % 97
            else "broken",
            partition=n % 2,
        )
        for n in range(count)
    ]


def results(source: Kafka, runtime: Any, out: Path | None = None) -> list[tuple[Any, ...]]:
    app = ps.App("kafka")
    cars = app.source("cars", source, event_time="ts", lateness="1s")
    per_lane = cars.key_by("lane").window(ps.tumbling("10s")).agg(cars=ps.count(), top=ps.max("speed"))
    sink = ps.sinks.Memory()
    app.sink("per_lane", per_lane, sink)
    app.run(on=runtime)
    return sorted((row["window_start"], row["lane"], row["cars"], row["top"]) for row in sink.rows())


def test_spark_gives_the_rows_of_a_node(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    name = topic(kafka, partitions=2)
    send(kafka, name, values(2_000), in_transaction="spark-tests")
    source = Kafka(name, SCHEMA, servers=kafka.servers, until="latest")
    on_node = results(source, ps.Node())
    assert sum(row[2] for row in on_node) == 2_000 - len(range(0, 2_000, 97))
    checkpoint = str(tmp_path / "checkpoint")
    assert results(source, ps.Spark(checkpoint=checkpoint, batch_events=700)) == on_node
    # It has come to the end that was settled then, whatever has come since.
    send(kafka, name, values(10))
    assert results(source, ps.Spark(checkpoint=checkpoint, batch_events=700)) == []


def test_partitions_that_came_later_are_read_when_a_run_goes_on(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    name, checkpoint, rows = topic(kafka), str(tmp_path / "checkpoint"), tmp_path / "rows"

    def read(enough: int) -> list[int]:
        app = ps.App("grown")
        cars = app.source("cars", Kafka(name, SCHEMA, servers=kafka.servers), event_time="ts", lateness="1s")
        per_lane = cars.key_by("lane").window(ps.tumbling("1s")).agg(cars=ps.count())
        app.sink("rows", per_lane, ps.sinks.JsonLines(rows))
        run = ps.Spark(checkpoint=checkpoint).start(app.graph(), app.name)
        while not run.wait(0.05) and len(lanes()) < enough:
            pass
        run.stop()
        run.finish()
        return lanes()

    def lanes() -> list[int]:
        text = rows.read_text() if rows.exists() else ""
        return sorted(int(json.loads(line)["lane"]) for line in text.splitlines())

    def report(number: int, seconds: int, partition: int = 0) -> Sent:
        return Sent(json.dumps({"ts": seconds * SECOND_US, "lane": f"{number}", "speed": 1}), None, partition)

    send(kafka, name, [report(0, 10), report(1, 20)])
    assert read(1) == [0]  # the window of the other is open
    kafka.grow_topic(name, 2)
    # Time stands at 19 s: what is older is late in the new partition too.
    send(kafka, name, [report(2, 18, 1), report(3, 19, 1), report(4, 30, 1), report(5, 31)])
    assert read(3) == [0, 1, 3]


def test_passwords_come_from_the_environment_and_are_written_nowhere(
    spark: SparkSession,
    kafka: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    name = topic(kafka)
    send(kafka, name, [Sent(sent.value) for sent in values(100)])
    settings = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "PLAIN",
        "sasl.username": kafka.user,
        "sasl.password": ps.env("PENSTOCK_TEST_PASSWORD"),
    }
    source = Kafka(name, SCHEMA, servers=kafka.sasl_servers, until="latest", settings=settings)
    monkeypatch.delenv("PENSTOCK_TEST_PASSWORD")
    with pytest.raises(RunError, match="the environment has no PENSTOCK_TEST_PASSWORD") as missing:
        results(source, ps.Node())
    monkeypatch.setenv("PENSTOCK_TEST_PASSWORD", "not " + kafka.password)
    refused = Kafka(
        name, SCHEMA, servers=kafka.sasl_servers, until="latest", settings=settings, connect_seconds=2
    )
    with pytest.raises(RunError, match="cannot be used") as wrong:
        results(refused, ps.Node())
    monkeypatch.setenv("PENSTOCK_TEST_PASSWORD", kafka.password)
    assert results(source, ps.Spark(checkpoint=str(tmp_path / "checkpoint"))) == results(source, ps.Node())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    written = b"".join(path.read_bytes() for path in files)
    said = f"{missing.value}{wrong.value}{source!r}{source.key()}{caplog.text}{''.join(capfd.readouterr())}"
    assert kafka.password.encode() not in written
    assert kafka.password not in said
