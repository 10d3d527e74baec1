"""Records in and out of a topic, by the client itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from lab.brokers.kafka import Broker

_numbers = itertools.count()


class Sent(NamedTuple):
    """A record as a test writes it."""

    value: bytes | str | None
    key: bytes | str | None = None
    partition: int = 0
    ms: int = 0
    headers: Sequence[tuple[str, Any]] = ()


def topic(broker: Broker, partitions: int = 1, **settings: str) -> str:
    """A topic that no other test has."""
    return broker.create_topic(f"topic-{next(_numbers)}", partitions, settings)


def send(broker: Broker, name: str, records: Iterable[Sent | str], in_transaction: str | None = None) -> None:
    """Writes them and waits until the broker has them."""
    producer = broker.producer({} if in_transaction is None else {"transactional.id": in_transaction})
    if in_transaction is not None:
        producer.init_transactions(30)
        producer.begin_transaction()
    for record in records:
        sent = record if isinstance(record, Sent) else Sent(record)
        options: dict[str, Any] = {"timestamp": sent.ms} if sent.ms else {}
        producer.produce(
            name, sent.value, sent.key, sent.partition, headers=list(sent.headers) or None, **options
        )
        producer.poll(0)
    if in_transaction is not None:
        producer.commit_transaction(30)
    assert producer.flush(30) == 0


def received(broker: Broker, name: str, partitions: int = 1) -> list[Any]:
    """Every record of a topic whose transaction is committed, partition by partition."""
    consumer = Consumer(
        {"bootstrap.servers": broker.servers, "group.id": "tests", "enable.partition.eof": True}
    )
    records: list[Any] = []
    for partition in range(partitions):
        consumer.assign([TopicPartition(name, partition, 0)])
        while True:
            record = consumer.poll(30)
            assert record is not None
            if record.error() is not None:
                assert record.error().name() == "_PARTITION_EOF"
                break
            records.append(record)
    consumer.close()
    return records
