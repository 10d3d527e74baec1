"""Results as messages to an MQTT broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.formats.json_lines import JsonText
from penstock.connectors.mqtt.source import check_qos
from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer
from penstock.query.errors import QueryError, RunError
from penstock.query.extras import Extra, needed
from penstock.query.types import DataType, Schema

if TYPE_CHECKING:
    from penstock.connectors.mqtt.broker import Connection

_MOST_UNACKNOWLEDGED = 1_000


class Mqtt(NodeSink):
    """Publishes every row to ``topic``: as a JSON object or, with ``payload``, the text of that column alone.

    With ``qos=1`` a broker that takes its time holds the run back: at most 1,000 messages are on their way,
    and a run does not end before all are acknowledged. No encryption, no password: across machines, put a
    tunnel in front.
    """

    at_once = True

    def __init__(
        self,
        topic: str,
        *,
        host: str = "127.0.0.1",
        port: int = 1883,
        payload: str | None = None,
        qos: int = 1,
        retain: bool = False,
        client_id: str = "",
        connect_seconds: float = 10.0,
    ) -> None:
        with needed(Extra.MQTT, "an MQTT sink"):
            from penstock.connectors.mqtt.broker import MqttBroker

        if not topic or "+" in topic or "#" in topic:
            hint = "one topic without wildcards, e.g. 'results/errors'"
            raise QueryError("not a topic to publish to", detail=f"got {topic!r}", hint=hint)
        check_qos(qos)
        self._broker = MqttBroker(host, port, client_id, connect_seconds)
        self._topic, self._payload, self._qos, self._retain = topic, payload, qos, retain

    @property
    def guarantee(self) -> str:
        if self._qos == 0:
            return "at most once: the broker may miss messages; a run that starts again publishes again"
        return (
            "at least once: the broker has every row when the run ends; a run that starts again publishes "
            "again from the beginning"
        )

    @property
    def batch_guarantee(self) -> str:
        if self._qos == 0:
            return "none: the broker may miss messages, and a batch in which the run failed may come twice"
        return super().batch_guarantee

    def open(self, schema: Schema) -> _MqttWriter:
        payload = self._payload
        if payload is not None and (payload not in schema or schema[payload].dtype is not DataType.STRING):
            columns = ", ".join(str(field) for field in schema)
            raise RunError(f"payload '{payload}' is no string column: columns are {columns}")
        return _MqttWriter(self._broker.connect(), self._topic, self._payload, self._qos, self._retain)

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        return _MqttBatches(self.open(schema))


class _MqttWriter(Writer):
    def __init__(
        self, connection: Connection, topic: str, payload: str | None, qos: int, retain: bool
    ) -> None:
        self._connection = connection
        self._topic, self._payload, self._qos, self._retain = topic, payload, qos, retain
        self._json = JsonText()

    def write(self, batch: pa.RecordBatch) -> None:
        connection = self._connection
        for payload in self._payloads(batch):
            connection.publish(self._topic, payload, self._qos, self._retain)
            if connection.unacknowledged > _MOST_UNACKNOWLEDGED:
                connection.drain(_MOST_UNACKNOWLEDGED // 2)
        connection.poll()

    def acknowledge(self) -> None:
        """Waits until the broker has all that was written."""
        self._connection.drain(0)

    def close(self, complete: bool) -> None:
        try:
            self.acknowledge()
        except RunError:
            if complete:  # else the run has a reason of its own to end
                raise
        finally:
            self._connection.close()

    def _payloads(self, batch: pa.RecordBatch) -> list[bytes] | list[str]:
        if self._payload is None:
            return self._json.lines(batch).split(b"\n")[:-1]
        texts: list[str | None] = batch.column(self._payload).to_pylist()
        return [text or "" for text in texts]


class _MqttBatches(BatchWriter):
    """A batch must not count before the broker has it."""

    def __init__(self, writer: _MqttWriter) -> None:
        self._writer = writer

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            self._writer.write(batch)
        self._writer.acknowledge()

    def delivered(self) -> Mapping[str, Any]:
        return {"kind": "mqtt"}

    def close(self, complete: bool) -> None:
        self._writer.close(complete)
