"""A consumer of some partitions of one topic, and the records that it has brought and nobody has taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from penstock.connectors.kafka.cluster import KafkaCluster
from penstock.query.errors import RunError

#: A ``confluent_kafka.Message``, which says of each of its parts that it may be missing.
Record: TypeAlias = Any

_MOST_WAITING = 20_000  # records; beyond it they stay with the client, which holds the broker back
_AT_ONCE = 10_000


class KafkaFeed:
    """Used by one thread at a time. Partitions are read from where they are told, and from nowhere else: what
    the cluster knows of a group counts for nothing."""

    def __init__(self, cluster: KafkaCluster, topic: str, users: int = 1) -> None:
        self._cluster, self._topic = cluster, topic
        self._users = users  # who have yet to close it
        self._trouble: KafkaError | None = None
        self._consumer: Consumer = cluster.consumer(
            **{"enable.partition.eof": True, "error_cb": self._on_error, "fetch.wait.max.ms": 100}
        )
        self._waiting: dict[int, deque[Record]] = {}
        self._count = 0  # records in all of them
        #: Of each partition: behind the last record at which the client came to the end.
        self.ends: dict[int, int] = {}

    def add(self, partition: int, offset: int) -> None:
        """Reads this partition too, from this offset."""
        self._waiting[partition] = deque()
        self._consumer.incremental_assign([TopicPartition(self._topic, partition, offset)])

    def reads(self, partition: int) -> bool:
        """Whether it has been told to read this partition."""
        return partition in self._waiting

    def poll(self, seconds: float = 0.0) -> None:
        """Takes what the client has; waits up to so long for the first record."""
        if self._count >= _MOST_WAITING:
            return
        try:
            # Asked for many the client would wait for that many, as long as it may.
            messages = self._consumer.consume(1, seconds) if seconds else []
            messages += self._consumer.consume(_AT_ONCE, 0)
        except KafkaException as error:
            raise self._cluster.error(error.args[0]) from None
        if self._trouble is not None and self._trouble.fatal():
            raise self._cluster.error(self._trouble)
        self._sort(messages)

    def waiting(self, partition: int) -> int:
        """Records of it that can be taken."""
        return len(self._waiting[partition])

    def take(self, partition: int, limit: int) -> Sequence[Record]:
        """The next records of it, at most so many."""
        waiting = self._waiting[partition]
        count = min(limit, len(waiting))
        self._count -= count
        if count == len(waiting):
            self._waiting[partition] = deque()
            return tuple(waiting)
        return [waiting.popleft() for _ in range(count)]

    def high(self, partition: int) -> int:
        """Where the partition ended when the broker last said so; -1 before that."""
        watermarks: Any = self._consumer.get_watermark_offsets(
            TopicPartition(self._topic, partition), cached=True
        )
        return -1 if watermarks is None else watermarks[1]

    @property
    def trouble(self) -> str:
        """What the client said last about its connections; empty if nothing."""
        return "" if self._trouble is None else self._trouble.str()

    def give_back(self, partition: int, records: Sequence[Record]) -> None:
        """Records that were taken and are another reader's."""
        self._waiting[partition].extendleft(reversed(records))
        self._count += len(records)

    def close(self) -> None:
        """The last of its users ends it."""
        self._users -= 1
        if self._users == 0:
            self._consumer.close()

    def _sort(self, messages: list[Record]) -> None:
        waiting = self._waiting
        for message in messages:
            error = message.error()
            partition = message.partition()
            if error is None:
                waiting[partition].append(message)
                self._count += 1
            else:
                self._told(error, partition, message)

    def _told(self, error: KafkaError, partition: int, message: Record) -> None:
        offset = message.offset()
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            self.ends[partition] = offset
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise RunError(
                f"partition {partition} of topic '{self._topic}' cannot be read on: {error.str()}; has the "
                "broker removed records that were not read yet? Keep them for longer (retention.ms)"
            )
        elif not error.retriable() and code != KafkaError._ALL_BROKERS_DOWN:
            raise self._cluster.error(error)

    def _on_error(self, error: KafkaError) -> None:
        # Lost connections are made again by the client, for as long as it takes.
        self._trouble = error
