"""The servers that tests, benchmarks and examples start are real ones, and answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from lab.brokers.kafka import Broker
from lab.brokers.postgres import Database
from lab.brokers.server import Server, ServerError, free_ports, is_open


def test_a_record_comes_back_with_its_key_headers_and_time(kafka: Broker) -> None:
    topic = kafka.create_topic("brokers-round-trip", partitions=2)
    producer = kafka.producer()
    producer.produce(topic, b"value", b"key", partition=1, timestamp=1_700_000_000_000, headers=[("h", b"x")])
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": "tests"})
    consumer.assign([TopicPartition(topic, 1, 0)])
    record = consumer.poll(30)
    consumer.close()
    assert record is not None
    assert record.error() is None
    assert (record.key(), record.value(), record.headers()) == (b"key", b"value", [("h", b"x")])
    assert (record.partition(), record.offset(), record.timestamp()[1]) == (1, 0, 1_700_000_000_000)


def test_a_database_takes_the_password_and_no_other(postgres: Database) -> None:
    assert postgres.rows("SELECT 1 + 1") == [(2,)]
    with pytest.raises(Exception, match="password authentication failed"):
        Database(postgres.dsn, "another").connect()


def test_a_server_that_does_not_start_says_what_it_said(tmp_path: Path) -> None:
    server = Server("Shell", ["sh", "-c", "echo no such thing; exit 3"], tmp_path / "log")
    with pytest.raises(ServerError, match="Shell ended with 3: no such thing"):
        server.wait_for(lambda: False)


def test_free_ports_are_free() -> None:
    ports = free_ports(3)
    assert len(set(ports)) == 3
    assert not any(is_open(port) for port in ports)
