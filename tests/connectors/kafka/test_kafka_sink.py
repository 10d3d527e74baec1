"""Rows as records of a real broker: their parts, transactions, who writes, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from lab.brokers.kafka import Broker
from penstock.connectors.writer import BatchWriter, Resumed
from penstock.memory.arrow import arrow_schema
from penstock.query.errors import RunError
from penstock.query.types import Schema
from penstock.sinks import Kafka
from tests.connectors.kafka.records import Sent, received, send, topic

SCHEMA = Schema.of({"ts": "timestamp", "lane": "string?", "cars": "int64"})


def rows(*cars: int) -> pa.Table:
    entries = [
        {"ts": datetime.fromtimestamp(number, UTC), "lane": f"lane {number}", "cars": number}
        for number in cars
    ]
    return pa.Table.from_pylist(entries, arrow_schema(SCHEMA))


def opened(sink: Kafka, folder: Path, resumed: Resumed | None = None) -> BatchWriter:
    writer = sink.open_batches(SCHEMA, resumed)
    writer.stage_in(str(folder))
    writer.begin()
    return writer


def cars(broker: Broker, name: str, partitions: int = 1) -> list[int]:
    return [json.loads(record.value())["cars"] for record in received(broker, name, partitions)]


def test_rows_are_records_with_key_headers_and_timestamp(kafka: Broker) -> None:
    name = topic(kafka)
    app = ps.App("sink")
    entries = [{"ts": 7_000, "lane": "a", "cars": 1}, {"ts": 9_000, "lane": None, "cars": 2}]
    stream = app.source("rows", ps.sources.Rows(entries, SCHEMA), "ts")
    whole = Kafka(
        name,
        servers=kafka.servers,
        key="cars",
        headers={"lane": "lane"},
        timestamp="ts",
        at_once=True,
    )
    app.sink("whole", stream, whole)
    app.run(on=ps.Node())
    first, second = received(kafka, name)
    assert json.loads(first.value()) == {"ts": "1970-01-01T00:00:00.007000Z", "lane": "a", "cars": 1}
    assert (first.key(), first.headers(), first.timestamp()[1]) == (b"1", [("lane", b"a")], 7)
    assert (second.key(), second.headers(), second.timestamp()[1]) == (b"2", [("lane", None)], 9)


def test_a_column_alone_is_the_value_and_null_is_no_value(kafka: Broker) -> None:
    name = topic(kafka)
    writer = Kafka(name, servers=kafka.servers, value="lane", at_once=True).open(SCHEMA)
    table = pa.Table.from_pylist([{"ts": 0, "lane": "ä", "cars": 0}, {"ts": 0, "lane": None, "cars": 0}])
    writer.write(table.cast(arrow_schema(SCHEMA)).to_batches()[0])
    writer.close(complete=True)
    assert [record.value() for record in received(kafka, name)] == ["ä".encode(), None]


def test_a_batch_is_seen_when_it_counts_and_once(kafka: Broker, tmp_path: Path) -> None:
    name = topic(kafka, partitions=2)
    sink = Kafka(name, servers=kafka.servers, key="lane")
    writer = opened(sink, tmp_path)
    writer.write_batch(0, rows(1, 2, 3))
    assert cars(kafka, name, 2) == []
    writer.counted(0)
    assert sorted(cars(kafka, name, 2)) == [1, 2, 3]
    writer.write_batch(1, rows(4, 5))  # counted, but the process dies before it could send it
    writer.close(complete=False)
    writer = opened(sink, tmp_path, Resumed(2, writer.delivered()))
    assert sorted(cars(kafka, name, 2)) == [1, 2, 3, 4, 5]
    writer.write_batch(2, rows(6))  # not counted
    writer = opened(sink, tmp_path, Resumed(2, writer.delivered()))
    writer.write_batch(2, rows(7, 8))
    writer.counted(2)
    assert sorted(cars(kafka, name, 2)) == [1, 2, 3, 4, 5, 7, 8]


def test_a_node_with_a_checkpoint_copies_a_topic_exactly_once(kafka: Broker, tmp_path: Path) -> None:
    source, target = topic(kafka, partitions=2), topic(kafka)

    def report(number: int) -> Sent:
        return Sent(json.dumps({"ts": number, "lane": "a", "cars": number}), None, number % 2)

    def copied(until: dict[int, int], checkpoint: str) -> list[int]:
        app = ps.App("copy")
        given = ps.sources.Kafka(source, SCHEMA, servers=kafka.servers, until=until)
        app.sink("to", app.source("from", given, "ts"), Kafka(target, servers=kafka.servers))
        app.run(on=ps.Node(checkpoint=tmp_path / checkpoint, epoch="50ms"))
        return sorted(cars(kafka, target))

    send(kafka, source, [report(number) for number in range(1_000)])
    assert copied({0: 500, 1: 500}, "one") == list(range(1_000))
    assert copied({0: 500, 1: 500}, "one") == list(range(1_000))  # it has come to its end
    assert len(copied({0: 100, 1: 0}, "two")) == 1_100  # a checkpoint of its own knows nothing of the other


def test_a_run_that_was_taken_over_can_write_no_more(kafka: Broker, tmp_path: Path) -> None:
    name = topic(kafka)
    sink = Kafka(name, servers=kafka.servers)
    old = opened(sink, tmp_path)
    old.write_batch(0, rows(1))
    new = opened(sink, tmp_path)
    with pytest.raises(RunError, match=r"another run writes to topic .* and has taken over"):
        old.counted(0)
    new.write_batch(0, rows(2))
    new.counted(0)
    assert cars(kafka, name) == [2]


def test_without_a_checkpoint_it_must_be_said_that_rows_may_come_twice() -> None:
    sink = Kafka("results", servers="127.0.0.1:1")
    with pytest.raises(RunError, match=r"could come twice.*give at_once=True"):
        sink.open(SCHEMA)
    assert sink.batch_guarantee.startswith("exactly once")
    assert Kafka("results", servers="127.0.0.1:1", at_once=True).batch_guarantee.startswith("at least once")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "street"}, "needs column 'street', which the rows lack: they have ts, lane, cars"),
        ({"value": "cars"}, "value 'cars' is no string column: it is int64"),
        ({"timestamp": "cars"}, "timestamp 'cars' is no timestamp column: it is int64"),
        ({"headers": {"h": "nope"}}, "needs column 'nope'"),
    ],
)
def test_columns_that_rows_lack_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message):
        Kafka("results", servers="127.0.0.1:1", **options).open_batches(SCHEMA, None)


def test_a_broker_that_is_not_there_is_told(tmp_path: Path) -> None:
    sink = Kafka("results", servers="127.0.0.1:1", connect_seconds=0.3)
    with pytest.raises(RunError, match=r"the Kafka brokers at 127\.0\.0\.1:1"):
        opened(sink, tmp_path)
    at_once = Kafka("results", servers="127.0.0.1:1", at_once=True, connect_seconds=0.3).open(SCHEMA)
    at_once.write(rows(1).to_batches()[0])
    with pytest.raises(RunError, match="took nothing for"):
        at_once.close(complete=True)
