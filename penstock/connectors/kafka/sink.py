"""Results as records of a Kafka topic: each batch in one transaction, or at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from penstock.connectors.kafka.cluster import KafkaCluster, Settings
from penstock.connectors.kafka.rows import RowForm
from penstock.connectors.staged import StagedBatches
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema


class Kafka(NodeSink):
    """Writes a record per row to ``topic``: a JSON object or, with ``value``, the text of that column alone.

    ``key``, ``headers`` (by name) and ``timestamp`` are columns; equal keys are in one partition.
    Exactly once: a batch's rows wait beside the checkpoint until it counts, then go out in one transaction
    with its number. With ``at_once`` they go out as they come, at least once; without a checkpoint there is
    nothing else.
    """

    def __init__(
        self,
        topic: str,
        *,
        servers: str,
        key: str | None = None,
        value: str | None = None,
        headers: Mapping[str, str] | None = None,
        timestamp: str | None = None,
        at_once: bool = False,
        settings: Settings | None = None,
        connect_seconds: float = 10.0,
    ) -> None:
        if not topic:
            raise QueryError("not a topic", detail=f"got {topic!r}", hint="one topic by its name")
        self._cluster = KafkaCluster(servers, dict(settings or {}), connect_seconds)
        self._topic, self._at_once = topic, at_once
        self._form = RowForm(key, value, dict(headers or {}), timestamp)

    @property
    def guarantee(self) -> str:
        return "at least once: a run that starts again writes again from the beginning"

    @property
    def batch_guarantee(self) -> str:
        if self._at_once:
            return super().batch_guarantee
        return "exactly once: a batch is one transaction, sent when the batch counts"

    def open(self, schema: Schema) -> Writer:
        if not self._at_once:
            raise RunError(
                f"rows for topic '{self._topic}' could come twice: without a checkpoint nobody knows what "
                "was written; give at_once=True, which promises at least once, or run with a checkpoint"
            )
        self._form.check(schema)
        return _AtOnce(self._cluster, self._topic, self._form)

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        self._form.check(schema)
        if self._at_once:
            return _AtOnceBatches(lambda: _AtOnce(self._cluster, self._topic, self._form))
        return _Transactions(self._cluster, self._topic, self._form, resumed)


class _Outbox:
    """A producer whose failures are told."""

    def __init__(self, cluster: KafkaCluster, topic: str, form: RowForm, **ours: Any) -> None:
        self._cluster, self._topic, self._form = cluster, topic, form
        self._failure: KafkaError | None = None
        told = {"on_delivery": self._on_delivery, "delivery.report.only.error": True}
        self.producer: Producer = cluster.producer(**told, **ours)

    def put(self, batch: pa.RecordBatch) -> None:
        """Hands the rows to the client, which writes them in the background."""
        for record in self._form.records(batch):
            while not self._put(*record):
                self.producer.poll(1.0)
                self.check()
        self.producer.poll(0)
        self.check()

    def flush(self) -> None:
        """Waits until the brokers have everything."""
        left = self.producer.flush(self._cluster.patience_s)
        self.check()
        while left:
            before, left = left, self.producer.flush(self._cluster.patience_s)
            self.check()
            if left == before:
                raise RunError(f"{self._cluster} took nothing for {self._cluster.patience_s:g} s")

    def check(self) -> None:
        """Raises if a record could not be written."""
        if self._failure is not None:
            raise self._cluster.error(self._failure)

    def _put(self, value: bytes | None, key: bytes | None, headers: Any, ms: int) -> bool:
        try:
            self.producer.produce(self._topic, value, key, headers=headers or None, timestamp=ms)
        except BufferError:  # the client holds as many as it may
            return False
        except KafkaException as error:
            raise self._cluster.error(error.args[0]) from None
        return True

    def _on_delivery(self, error: KafkaError | None, record: object) -> None:
        self._failure = self._failure or error


class _AtOnce(Writer):
    def __init__(self, cluster: KafkaCluster, topic: str, form: RowForm) -> None:
        self._outbox = _Outbox(cluster, topic, form)

    def write(self, batch: pa.RecordBatch) -> None:
        self._outbox.put(batch)

    def acknowledge(self) -> None:
        """Waits until the brokers have all that was written."""
        self._outbox.flush()

    def close(self, complete: bool) -> None:
        try:
            self._outbox.flush()
        except RunError:
            if complete:  # else the run has a reason of its own to end
                raise


class _AtOnceBatches(BatchWriter):
    """A batch must not count before the brokers have it."""

    def __init__(self, open_writer: Callable[[], _AtOnce]) -> None:
        self._open = open_writer
        self._writer: _AtOnce | None = None

    def begin(self) -> None:
        self._writer = self._open()

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        assert self._writer is not None
        for batch in rows.to_batches():
            self._writer.write(batch)
        self._writer.acknowledge()

    def delivered(self) -> Mapping[str, Any]:
        return {"kind": "kafka"}

    def close(self, complete: bool) -> None:
        if self._writer is not None:
            self._writer.close(complete)


class _Transactions(StagedBatches):
    """The number of a batch is committed in its transaction, as the offset of a group of the sink's own; its
    transactional id shuts out whoever had it before."""

    def __init__(self, cluster: KafkaCluster, topic: str, form: RowForm, resumed: Resumed | None) -> None:
        super().__init__("kafka", f"topic '{topic}'", resumed)
        self._cluster, self._topic, self._form = cluster, topic, form
        self._outbox: _Outbox | None = None
        self._group: Any = None

    def take_over(self, name: str) -> int:
        own = f"penstock-{name}"
        self._outbox = _Outbox(self._cluster, self._topic, self._form, **{"transactional.id": own})
        producer = self._outbox.producer
        # Ends what an earlier run has left open, so that the number read below is the last.
        self._tried(lambda: producer.init_transactions(self._cluster.patience_s))
        consumer = self._cluster.consumer(**{"group.id": own})
        self._group = consumer.consumer_group_metadata()
        try:
            marker = [TopicPartition(self._topic, 0)]
            committed = self._tried(lambda: consumer.committed(marker, timeout=self._cluster.patience_s))
        finally:
            consumer.close()
        return int(max(committed[0].offset, 0)) - 1

    def send(self, batch_id: int, rows: pa.Table) -> None:
        assert self._outbox is not None
        producer, patience_s = self._outbox.producer, self._cluster.patience_s
        marker = [TopicPartition(self._topic, 0, batch_id + 1)]
        self._tried(producer.begin_transaction)
        for batch in rows.to_batches():
            self._outbox.put(batch)
        self._tried(lambda: producer.send_offsets_to_transaction(marker, self._group, patience_s))
        self._tried(lambda: producer.commit_transaction(patience_s))

    def _tried(self, step: Callable[[], Any]) -> Any:
        """What the step gives; tried once more where the client says that this may help."""
        for left in (2, 1, 0):
            try:
                return step()
            except KafkaException as failure:
                error: KafkaError = failure.args[0]
                if error.code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED):
                    raise RunError(
                        f"another run writes to topic '{self._topic}' with this checkpoint and has taken over"
                    ) from None
                if not error.retriable() or not left:
                    raise self._cluster.error(error) from None
        raise AssertionError
