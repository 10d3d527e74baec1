"""Records of a real broker as events: parts of a record, where reading begins and ends, bad records."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from lab.brokers.kafka import Broker
from penstock.connectors.kafka.reader import KafkaReader
from penstock.connectors.reader import Resume
from penstock.query.errors import QueryError, RunError
from penstock.sources import Kafka
from tests.connectors.drain import Drain, RangeDrain
from tests.connectors.kafka.records import Sent, send, topic

SCHEMA = {"ts": "timestamp", "lane": "string"}
HOUR_MS = 3_600_000


def source(broker: Broker, name: str, *args: Any, **options: Any) -> Kafka:
    return Kafka(name, *args, servers=broker.servers, **{"until": "latest", **options})


def rows_of(kafka: Kafka) -> list[dict[str, Any]]:
    """What a run on a node reads."""
    return run(kafka)[0]


def run(kafka: Kafka, event_time: str = "ts") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows and the bad records."""
    app = ps.App("read")
    stream = app.source("records", kafka, event_time=event_time)
    rows, bad = ps.sinks.Memory(), ps.sinks.Memory()
    app.sink("rows", stream, rows)
    app.sink("bad", stream.bad_records(), bad)
    app.run(on=ps.Node(workers=2))
    return rows.rows(), bad.rows()


def texts(count: int, first: int = 0) -> list[str]:
    return [json.dumps({"ts": first + number, "lane": f"lane {number % 3}"}) for number in range(count)]


def test_values_are_events_of_all_partitions(kafka: Broker) -> None:
    name = topic(kafka, partitions=3)
    send(kafka, name, [Sent(text, partition=number % 3) for number, text in enumerate(texts(300))])
    rows = rows_of(source(kafka, name, SCHEMA))
    assert sorted(row["ts"] for row in rows) == list(range(300))
    assert {row["ts"] % 3: row["lane"] for row in rows} == {0: "lane 0", 1: "lane 1", 2: "lane 2"}


def test_other_parts_of_a_record_are_columns(kafka: Broker) -> None:
    name = topic(kafka, partitions=2)
    headers = [("trace", b"first"), ("trace", b"last"), ("n", b"7")]
    send(kafka, name, [Sent('{"lane": "a"}', "12", 1, HOUR_MS, headers), Sent('{"lane": "b"}', None, 1, 5)])
    schema = {
        "lane": "string",
        "card": "int64?",
        "ts": "timestamp",
        "trace": "string?",
        "n": "int32?",
        "part": "int32",
        "at": "int64",
        "all": "string",
    }
    columns = {
        "card": "key",
        "ts": "timestamp",
        "trace": "header:trace",
        "n": "header:n",
        "part": "partition",
        "at": "offset",
        "all": "value",
    }
    rows = rows_of(source(kafka, name, schema, columns=columns))
    assert rows == [
        {
            "lane": "a",
            "card": 12,
            "ts": HOUR_MS * 1_000,
            "trace": "last",
            "n": 7,
            "part": 1,
            "at": 0,
            "all": '{"lane": "a"}',
        },
        {
            "lane": "b",
            "card": None,
            "ts": 5_000,
            "trace": None,
            "n": None,
            "part": 1,
            "at": 1,
            "all": '{"lane": "b"}',
        },
    ]


def test_without_a_schema_records_are_text(kafka: Broker) -> None:
    name = topic(kafka)
    send(kafka, name, [Sent("two\nlines", "k", ms=7), Sent(None, ms=8), Sent(b"\xff", ms=9), Sent("", ms=9)])
    rows, bad = run(source(kafka, name), "timestamp")
    assert rows == [
        {"timestamp": 7_000, "key": "k", "value": "two\nlines"},
        {"timestamp": 8_000, "key": None, "value": None},
        {"timestamp": 9_000, "key": None, "value": ""},
    ]
    assert [(row["offset"], row["reason"]) for row in bad] == [(2, "the record's value is not UTF-8: byte 0")]


def test_a_text_format_has_one_column_beside_the_parts(kafka: Broker) -> None:
    name = topic(kafka)
    send(kafka, name, [Sent("a\r\nb", ms=7)])
    schema = {"line": "string", "ts": "timestamp"}
    rows = rows_of(source(kafka, name, schema, format="text", columns={"ts": "timestamp"}))
    assert rows == [{"line": "a\r\nb", "ts": 7_000}]


def test_csv_values_are_fields_in_schema_order(kafka: Broker) -> None:
    name = topic(kafka)
    send(kafka, name, ["5,a", '6,"b,c"'])
    rows = rows_of(source(kafka, name, SCHEMA, format="csv"))
    assert rows == [{"ts": 5, "lane": "a"}, {"ts": 6, "lane": "b,c"}]


def test_bad_records_are_told_by_partition_and_offset(kafka: Broker) -> None:
    name = topic(kafka, partitions=2)
    good = '{"ts": 1, "lane": "a"}'
    values: list[bytes | str | None] = [good, "{", None, "", "\n", good, '{"ts": 2,\n"lane": "b"}', b"\xff{}"]
    send(kafka, name, [Sent(value, partition=1) for value in values])
    send(kafka, name, [Sent(good, "x")])
    schema = {**SCHEMA, "n": "int32?"}
    rows, bad = run(source(kafka, name, schema, columns={"n": "key"}))
    assert [row["lane"] for row in rows] == ["a", "a", "b"]
    reasons = {(row["partition"], row["offset"]): row["reason"] for row in bad}
    assert reasons == {
        (0, 0): "column 'n': 'x' is not an int32",
        (1, 1): "the line is no JSON: Expecting property name enclosed in double quotes at character 1",
        (1, 2): "the message has no value",
        (1, 3): "the message is empty",
        (1, 4): "the message is empty",
        (1, 7): "the line is not UTF-8: byte 0 is 0xff",
    }


def test_reading_begins_and_ends_where_it_is_told(kafka: Broker) -> None:
    name = topic(kafka, partitions=2)
    for partition in range(2):
        send(kafka, name, [Sent(t, None, partition, HOUR_MS * (i + 1)) for i, t in enumerate(texts(10))])

    def times(**options: Any) -> list[int]:
        return sorted(row["ts"] for row in rows_of(source(kafka, name, SCHEMA, **options)))

    assert times(start={0: 7, 1: 9}) == [7, 8, 9, 9]
    assert times(start={0: 7}, until={0: 8, 1: 2}) == [0, 1, 7]
    assert times(start="1970-01-01T08:00:00Z") == [7, 7, 8, 8, 9, 9]
    assert times(start="1970-01-01T08:00:00+01:00") == [6, 6, 7, 7, 8, 8, 9, 9]
    assert times(until="1970-01-01T03:00") == [0, 0, 1, 1]
    assert times(start="2999-01-01") == []
    assert times(start="latest") == []


def test_open_and_broken_off_transactions_are_not_read(kafka: Broker) -> None:
    name = topic(kafka)
    send(kafka, name, texts(5), in_transaction="source-tests")
    aborted = kafka.producer({"transactional.id": "source-tests"})
    aborted.init_transactions(30)
    aborted.begin_transaction()
    aborted.produce(name, '{"ts": 77, "lane": "never"}')
    aborted.abort_transaction(30)
    send(kafka, name, texts(5, first=5), in_transaction="source-tests")
    aborted = kafka.producer({"transactional.id": "source-tests"})
    aborted.init_transactions(30)
    aborted.begin_transaction()
    aborted.produce(name, '{"ts": 78, "lane": "never"}')
    assert aborted.flush(30) == 0
    # The marks that transactions leave have offsets too: the end is behind the last of them.
    assert [row["ts"] for row in rows_of(source(kafka, name, SCHEMA))] == list(range(10))
    aborted.abort_transaction(30)


def test_ranges_give_the_same_rows_wherever_they_are_cut(kafka: Broker) -> None:
    name = topic(kafka)
    values = [text if number % 7 else "bad" for number, text in enumerate(texts(1_000))]
    send(kafka, name, values[:400], in_transaction="range-tests")
    send(kafka, name, values[400:], in_transaction="range-tests")
    whole = RangeDrain(source(kafka, name, SCHEMA))
    whole.to_end()
    assert len(whole.rows) == sum(number % 7 != 0 for number in range(1_000))
    assert [entry.offset for entry in whole.bad] == [n + (n >= 400) for n in range(0, 1_000, 7)]
    for limit in (37, 400):
        drain = RangeDrain(source(kafka, name, SCHEMA))
        drain.to_end(limit, cuts=(5, 1, 300))
        assert drain.rows == whole.rows
        assert drain.bad == whole.bad
        assert drain.resume.offset == len(whole.rows)


def test_a_range_begins_where_the_one_before_did_not_end(kafka: Broker) -> None:
    name = topic(kafka)
    send(kafka, name, texts(50))
    reading = source(kafka, name, SCHEMA)
    drain = RangeDrain(reading)
    drain.read(20)
    drain.resume = Resume(10, 10, 10)  # a run that goes back reads the same records again
    drain.read(30)
    assert [row["ts"] for row in drain.rows] == [*range(20), *range(10, 30)]
    assert drain.positions.waiting([30]) == 0  # nobody has looked yet
    assert drain.positions.latest([30], 5) == [35]
    assert drain.positions.waiting([30]) == 20


def test_where_it_begins_is_settled_for_all_runs_of_a_checkpoint(kafka: Broker, tmp_path: Path) -> None:
    name = topic(kafka)
    send(kafka, name, texts(5))
    first = source(kafka, name, SCHEMA, start="latest", until=None).shipped(str(tmp_path))
    send(kafka, name, texts(5, first=5))
    kafka.grow_topic(name, 2)
    again = source(kafka, name, SCHEMA, start="latest", until=None).shipped(str(tmp_path))
    assert (first.partitions, again.partitions) == (1, 2)
    assert len(list(tmp_path.iterdir())) == 2  # the older one is removed with all that runs have left
    travelled: Kafka = pickle.loads(pickle.dumps(again))
    positions = travelled.positions()
    assert positions.latest([0, 0], None) == [10, 0]
    drain = RangeDrain(travelled)
    drain.read(10)
    assert [row["ts"] for row in drain.rows] == list(range(5, 10))


def test_records_larger_than_the_quick_way_takes_are_read_all_the_same(kafka: Broker) -> None:
    name = topic(kafka)
    large = [json.dumps({"ts": n, "lane": "x" * 300_000}) if n != 7 else "{" for n in range(9)]
    send(kafka, name, large)
    rows, bad = run(source(kafka, name, SCHEMA))
    assert [row["ts"] for row in rows] == [0, 1, 2, 3, 4, 5, 6, 8]
    assert [row["offset"] for row in bad] == [7]


def test_the_lag_is_what_is_pending_and_the_position_is_in_kafka(kafka: Broker) -> None:
    name = topic(kafka)
    send(kafka, name, [*texts(10), "bad", *texts(30_000, first=10)])
    drain = Drain(source(kafka, name, SCHEMA, until=None))
    while drain.reader.available(1) == 0:
        pass
    assert drain.reader.available(1) == 30_011
    assert drain.reader.next_due_ns() == 1 + 1_000_000
    assert drain.read(5) == 5
    assert isinstance(drain.reader, KafkaReader)
    assert drain.reader.position == 5
    assert drain.read(6) == 6
    assert drain.reader.position == 12
    assert not drain.reader.finished
    drain.reader.close()


def test_without_a_broker_or_a_topic_the_run_does_not_start(kafka: Broker) -> None:
    with pytest.raises(RunError, match=r"have no topic 'nowhere'.*create it first"):
        rows_of(source(kafka, "nowhere", SCHEMA))
    gone = Kafka("t", SCHEMA, servers="127.0.0.1:1", until="latest", connect_seconds=0.5)
    with pytest.raises(RunError, match=r"the Kafka brokers at 127\.0\.0\.1:1 cannot be used"):
        rows_of(gone)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"lane": "topic"}}, "unknown part of a Kafka record: column 'lane' is to be 'topic'"),
        ({"columns": {"street": "key"}}, "the schema has no column 'street'"),
        ({"columns": {"lane": "timestamp"}}, "a record's timestamp is a timestamp: column 'lane' is string"),
        ({"columns": {"lane": "offset"}}, "a record's offset is an int64: column 'lane' is string"),
        ({"start": "yesterday"}, "start is no place in a topic: got 'yesterday'"),
        ({"until": {0: -1}}, "until is no place in a topic"),
        ({"format": "parquet"}, "unknown format 'parquet'"),
        ({"settings": {"sasl.password": "abc"}}, "a secret stands in the environment, not in the program"),
        ({"settings": {"enable.auto.commit": True}}, "a setting of Kafka that Penstock has to choose"),
        ({"servers": ""}, "Kafka needs servers"),
        ({"connect_seconds": 0}, "connect_seconds must be positive"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_written(options: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        Kafka("cars", SCHEMA, **{"servers": "127.0.0.1:9092", **options})
    assert "abc" not in str(caught.value)


def test_equal_sources_are_one_stream() -> None:
    def kafka(**options: Any) -> Kafka:
        return Kafka("cars", SCHEMA, **{"servers": "127.0.0.1:9092", **options})

    assert kafka().key() == kafka().key()
    others = ({"start": "latest"}, {"until": "latest"}, {"format": "csv"}, {"columns": {"lane": "key"}})
    assert len({kafka(**options).key() for options in others} | {kafka().key()}) == 5
