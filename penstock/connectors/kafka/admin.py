"""Questions to a cluster: how many partitions a topic has, and at which offsets they begin and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from penstock.connectors.kafka.cluster import LOG, KafkaCluster
from penstock.query.errors import RunError

Answer = TypeVar("Answer")


class Admin:
    """A connection to ask by; it ends when nobody holds it."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self._trouble: list[str] = []  # what the client said about its connections
        self._knows_brokers = False
        settings = {"error_cb": lambda error: self._trouble.append(error.str())}
        self._client = AdminClient(cluster.client_settings(settings), logger=LOG)

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has now."""
        patience_s = self._cluster.patience_s
        metadata = self._ask(lambda client: client.list_topics(topic, timeout=patience_s)).topics[topic]
        if metadata.error is not None:
            raise RunError(
                f"{self._cluster} have no topic '{topic}': {metadata.error.str()}; create it first"
            )
        self._knows_brokers = True
        return len(metadata.partitions)

    def offsets(self, topic: str, partitions: int, place: int | str) -> list[int]:
        """The offset of each partition where it begins, ``"earliest"``, where it ends, ``"latest"``, or of
        the first record from so many milliseconds since 1970 on; there -1 is none."""
        if isinstance(place, int):
            spec = OffsetSpec.for_timestamp(place)
        else:
            edge: Any = OffsetSpec.earliest if place == "earliest" else OffsetSpec.latest
            spec = edge()
        if not self._knows_brokers:
            self.partitions(topic)  # asked for offsets first, the client may wait seconds for a leader
        request = {TopicPartition(topic, number): spec for number in range(partitions)}
        patience_s = self._cluster.patience_s

        def question(client: AdminClient) -> list[int]:
            # Of transactions, those that are still open count as not there.
            answers = client.list_offsets(
                request, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=patience_s
            )
            offsets = {partition.partition: answer.result().offset for partition, answer in answers.items()}
            return [offsets[number] for number in range(partitions)]

        return self._ask(question)

    def _ask(self, question: Callable[[AdminClient], Answer]) -> Answer:
        try:
            return question(self._client)
        except KafkaException as error:
            self._client.poll(0)
            raise self._cluster.error(error.args[0], self._trouble[-1:]) from None
