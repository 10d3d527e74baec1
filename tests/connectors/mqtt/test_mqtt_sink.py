"""Results as messages: what a row looks like, that the broker has all of them, and clear errors."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.connectors.mqtt.broker import MqttBroker
from penstock.connectors.writer import Writer
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema
from penstock.sinks import Mqtt
from tests.connectors.batches import begun
from tests.connectors.mqtt.mosquitto import broker, free_port, needs_mosquitto

SCHEMA = Schema.of({"ts": "timestamp", "lane": "string?", "speed": "float64"})


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with broker(tmp_path_factory.mktemp("mosquitto")) as (port, _):
        yield port


class Listener:
    """Subscribes to a topic and collects payloads."""

    def __init__(self, port: int, topic: str) -> None:
        self.payloads: list[bytes] = []
        self._connection = MqttBroker(port=port).connect(
            lambda message: self.payloads.append(message.payload)
        )
        self._connection.subscribe(topic, 1)

    def until(self, count: int) -> list[bytes]:
        while len(self.payloads) < count:
            readable, _, _ = select.select([self._connection.fileno()], [], [], 10)
            assert readable, f"only {len(self.payloads)} messages came"
            self._connection.poll()
        return self.payloads

    def close(self) -> None:
        self._connection.close()


def write_on(writer: Writer) -> None:
    for _ in range(100):  # the first writes may still go into the socket
        writer.write(batch(10))
    writer.close(True)


def batch(rows: int, first: int = 0) -> pa.RecordBatch:
    numbers = range(first, first + rows)
    return pa.RecordBatch.from_pydict(
        {
            "ts": pa.array([1_000 * i for i in numbers], pa.timestamp("us", "UTC")),
            "lane": [None if i == 1 else f"l{i}" for i in numbers],
            "speed": [i / 2 for i in numbers],
        }
    )


@needs_mosquitto
def test_rows_are_json_objects(port: int) -> None:
    listener = Listener(port, "out/json")
    writer = Mqtt("out/json", port=port).open(SCHEMA)
    writer.write(batch(2))
    writer.close(True)
    assert listener.until(2) == [
        b'{"ts":"1970-01-01T00:00:00.000000Z","lane":"l0","speed":0.0}',
        b'{"ts":"1970-01-01T00:00:00.001000Z","lane":null,"speed":0.5}',
    ]
    listener.close()


@needs_mosquitto
def test_a_column_alone_is_sent_as_it_is(port: int) -> None:
    listener = Listener(port, "out/lane")
    writer = Mqtt("out/lane", port=port, payload="lane", qos=0).open(SCHEMA)
    writer.write(batch(3))
    writer.close(True)
    assert listener.until(3) == [b"l0", b"", b"l2"]
    listener.close()


@needs_mosquitto
def test_the_broker_has_every_row_when_a_run_ends(port: int) -> None:
    listener = Listener(port, "out/many")
    writer = Mqtt("out/many", port=port, payload="lane").open(SCHEMA)
    for first in range(2, 5_002, 500):
        writer.write(batch(500, first))
        listener.until(first + 498)  # a broker throws away what a slow subscriber leaves waiting
    writer.close(True)
    assert listener.until(5_000) == [f"l{i}".encode() for i in range(2, 5_002)]
    listener.close()


@needs_mosquitto
def test_a_batch_is_with_the_broker_before_it_counts(port: int) -> None:
    sink = Mqtt("out/batches", port=port, payload="lane", client_id="batches")
    writer = begun(sink, SCHEMA)
    listener = Listener(port, "out/batches")
    for number in range(2):
        writer.write_batch(number, pa.Table.from_batches([batch(2, 10 * number), batch(1, 10 * number + 5)]))
        assert len(listener.until(3 * number + 3)) == 3 * number + 3
    writer.close(True)
    assert listener.payloads == [b"l0", b"", b"l5", b"l10", b"l11", b"l15"]
    listener.close()


@needs_mosquitto
def test_a_broker_that_goes_away_does_not_hide_why_a_run_failed(tmp_path: Path) -> None:
    with broker(tmp_path) as (port, process):
        writer = Mqtt("out/lost", port=port).open(SCHEMA)
        writer.write(batch(1))
        process.kill()
        process.wait()
        writer.close(False)


@needs_mosquitto
def test_a_broker_that_goes_away_stops_the_run(tmp_path: Path) -> None:
    with broker(tmp_path) as (port, process):
        writer = Mqtt("out/lost", port=port).open(SCHEMA)
        process.kill()
        process.wait()
        with pytest.raises(RunError, match=f"lost the connection to the MQTT broker at 127.0.0.1:{port}"):
            write_on(writer)


def test_without_a_broker_the_error_says_where() -> None:
    port = free_port()
    with pytest.raises(RunError, match=f"cannot reach the MQTT broker at 127.0.0.1:{port}"):
        Mqtt("out", port=port).open(SCHEMA)


def test_a_payload_must_be_a_string_column() -> None:
    with pytest.raises(
        RunError, match=r"payload 'speed' is no string column: columns are ts: timestamp, lane"
    ):
        Mqtt("out", payload="speed").open(SCHEMA)


@pytest.mark.parametrize("topic", ["", "a/#", "+/b"])
def test_wildcards_are_no_topic_to_publish_to(topic: str) -> None:
    with pytest.raises(QueryError, match="not a topic to publish to"):
        Mqtt(topic)


def test_guarantees_follow_the_quality_of_service() -> None:
    assert Mqtt("out").guarantee.startswith("at least once")
    assert Mqtt("out", qos=0).guarantee.startswith("at most once")
    assert Mqtt("out").batch_guarantee.startswith("at least once")
    assert Mqtt("out", qos=0).batch_guarantee.startswith("none")
