"""Messages of a broker as events: formats, bad records, the end, and what happens without a broker."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

import penstock as ps
from penstock.connectors.mqtt.broker import MqttBroker
from penstock.query.errors import QueryError, RunError
from penstock.sources import Mqtt
from tests.connectors.drain import Drain
from tests.connectors.mqtt.mosquitto import broker, free_port, needs_mosquitto

SCHEMA = {"ts": "timestamp", "lane": "string"}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with broker(tmp_path_factory.mktemp("mosquitto")) as (port, _):
        yield port


def send(port: int, topic: str, *payloads: bytes | str) -> None:
    connection = MqttBroker(port=port).connect()
    for payload in payloads:
        connection.publish(topic, payload, 1, False)
    connection.drain(0)
    connection.close()


def read_until(drain: Drain, records: int) -> list[str]:
    """Reads until so many messages have become rows or bad records; returns the reasons."""
    reasons: list[str] = []
    for step in range(10_000):
        if drain.reader.available(step) > 0:
            drain.read(100)
        reasons += [f"{entry.offset}: {entry.reason}" for entry in drain.reader.take_bad()]
        if len(drain.rows) + len(reasons) >= records:
            return reasons
        descriptor = drain.reader.fileno()
        assert descriptor is not None
        select.select([descriptor], [], [], 10)
    raise AssertionError(f"only {len(drain.rows)} rows and {len(reasons)} bad records came")


@needs_mosquitto
def test_messages_are_events_until_the_limit(port: int) -> None:
    source = Mqtt("cars/json", SCHEMA, port=port, limit=3)
    assert source.bounded
    drain = Drain(source)
    assert drain.reader.available(5) == 0
    assert drain.reader.next_due_ns() == 5 + 1_000_000
    send(port, "cars/json", '{"ts": 1, "lane": "a"}', '{"ts": 2,\n "lane": "b"}')
    assert read_until(drain, 2) == []
    assert not drain.reader.finished
    send(port, "cars/other", '{"ts": 9, "lane": "x"}')
    send(port, "cars/json", '{"ts": 3, "lane": "c"}', '{"ts": 4, "lane": "beyond the limit"}')
    read_until(drain, 3)
    assert drain.reader.finished
    assert drain.rows == [{"ts": 1, "lane": "a"}, {"ts": 2, "lane": "b"}, {"ts": 3, "lane": "c"}]
    drain.reader.close()


@needs_mosquitto
def test_messages_that_do_not_fit_are_bad_records_with_their_number(port: int) -> None:
    drain = Drain(Mqtt("cars/bad", SCHEMA, port=port, limit=4))
    send(port, "cars/bad", "", '{"ts": 1, "lane": "a"}', "nonsense", b'{"ts": 2, "lane": "\xff"}')
    reasons = read_until(drain, 4)
    assert reasons[:2] == [
        "0: the message is empty",
        "2: the line is no JSON: Expecting value at character 0",
    ]
    assert reasons[2].startswith("3: the line is not UTF-8")
    assert drain.rows == [{"ts": 1, "lane": "a"}]
    assert drain.reader.finished
    drain.reader.close()


@needs_mosquitto
def test_fields_of_csv_come_in_schema_order(port: int) -> None:
    drain = Drain(Mqtt("cars/csv", SCHEMA, port=port, format="csv", delimiter=";", qos=0))
    send(port, "cars/csv", "17;a\n", "18; b")
    assert read_until(drain, 2) == []
    assert drain.rows == [{"ts": 17, "lane": "a"}, {"ts": 18, "lane": " b"}]
    drain.reader.close()


@needs_mosquitto
def test_without_a_schema_messages_are_text_with_topic_and_time(port: int) -> None:
    source = Mqtt("rooms/+", port=port)
    assert source.ordered
    assert not source.bounded
    drain = Drain(source)
    send(port, "rooms/one", "21.5", b"\xff")
    send(port, "rooms/two", "")
    assert read_until(drain, 3) == ["1: the message is not UTF-8: byte 0"]
    assert [(row["topic"], row["payload"]) for row in drain.rows] == [
        ("rooms/one", "21.5"),
        ("rooms/two", ""),
    ]
    assert 0 < drain.rows[0]["received"] <= drain.rows[1]["received"]
    drain.reader.close()


@needs_mosquitto
def test_a_broker_that_goes_away_stops_the_run_with_its_address(tmp_path: Path) -> None:
    process: Popen[str]
    with broker(tmp_path) as (port, process):
        drain = Drain(Mqtt("cars/json", SCHEMA, port=port))
        process.kill()
        process.wait()
        select.select([drain.reader.fileno()], [], [], 10)
        with pytest.raises(RunError, match=f"lost the connection to the MQTT broker at 127.0.0.1:{port}"):
            drain.reader.available(1)


@needs_mosquitto
def test_a_node_reads_what_another_publishes(port: int) -> None:
    rows = [{"ts": 1_000 * i, "lane": f"lane {i % 3}"} for i in range(2_500)]
    reading, result = ps.App("reading"), ps.sinks.Memory()
    cars = reading.source("cars", Mqtt("loop/cars", SCHEMA, port=port, limit=len(rows)), event_time="ts")
    reading.sink("all", cars, result)
    execution = ps.Node(workers=1).start(reading.graph())  # subscribed once it has started
    writing = ps.App("writing")
    made = writing.source("made", ps.sources.Rows(rows, ps.Schema.of(SCHEMA)), event_time="ts")
    writing.sink("publish", made, ps.sinks.Mqtt("loop/cars", port=port))
    writing.run(on=ps.Node(workers=1))
    assert execution.wait(60)
    assert execution.finish().complete
    assert sorted(result.rows(), key=lambda row: row["ts"]) == rows


def test_without_a_broker_the_error_is_one_line_that_says_where() -> None:
    port = free_port()
    app = ps.App("alone")
    cars = app.source("cars", Mqtt("cars", SCHEMA, port=port), event_time="ts")
    app.sink("out", cars, ps.sinks.Discard())
    with pytest.raises(RunError) as raised:
        app.run(on=ps.Node(workers=1))
    assert f"cannot reach the MQTT broker at 127.0.0.1:{port}: " in str(raised.value)
    assert f"start one, e.g. mosquitto -p {port}" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_spark_cannot_read_it_again_and_says_so() -> None:
    with pytest.raises(
        RunError, match=r"a Mqtt source cannot be read again: Spark needs that after a failure"
    ):
        Mqtt("cars", SCHEMA).positions()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topic": ""}, "not a topic to subscribe to: got ''"),
        ({"topic": "a/#/b"}, "not a topic to subscribe to: got 'a/#/b'"),
        ({"topic": "a/b+"}, "not a topic to subscribe to"),
        ({"topic": "t", "port": 0}, "port must be between 1 and 65535: got 0"),
        ({"topic": "t", "qos": 2}, "qos is 0 or 1: got 2"),
        ({"topic": "t", "format": "xml"}, "unknown format 'xml'"),
        ({"topic": "t", "format": "csv"}, "schema and format do not fit: got format 'csv'"),
        ({"topic": "t", "format": "text", "schema": SCHEMA}, "schema and format do not fit"),
        ({"topic": "t", "limit": -1}, "limit must not be negative: got -1"),
        ({"topic": "t", "connect_seconds": 0}, "connect_seconds must be positive: got 0"),
    ],
)
def test_wrong_settings_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        Mqtt(**arguments)  # type: ignore[arg-type]


def test_sources_of_the_same_messages_are_one() -> None:
    assert Mqtt("cars", SCHEMA).key() == Mqtt("cars", SCHEMA).key()
    assert Mqtt("cars", SCHEMA).key() != Mqtt("cars", SCHEMA, port=1884).key()
