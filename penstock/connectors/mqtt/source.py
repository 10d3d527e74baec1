"""Messages of an MQTT broker."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.buffered import BufferedReader
from penstock.connectors.files.source import SchemaLike
from penstock.connectors.formats.line_format import LineFormat
from penstock.connectors.formats.lines import LineParser
from penstock.connectors.formats.messages import MessageParser
from penstock.connectors.formats.registry import LineFormatName, line_format
from penstock.connectors.formats.text import TextFormat
from penstock.connectors.formats.values import decode
from penstock.connectors.reader import NodeSource, Reader
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.extras import Extra, needed
from penstock.query.types import Schema

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage

    from penstock.connectors.mqtt.broker import MqttBroker

#: The columns of messages that are taken as they are.
TEXT_SCHEMA = Schema.of({"received": "timestamp", "topic": "string", "payload": "string"})

_MOST_WAITING = (
    10_000  # messages not yet decoded; beyond it they stay in the socket, and then with the broker
)
_POLL_NS = 1_000_000


class Mqtt(NodeSource):
    """Messages that a broker has for ``topic``, which may hold the wildcards ``+`` and ``#``.

    ``format`` says what a message is: with ``"jsonl"`` a JSON object, with ``"csv"`` fields in schema order,
    one event each; with ``"text"``, and no schema, anything in UTF-8: the columns are ``received`` (when it
    came), ``topic`` and ``payload``. It ends after ``limit`` messages, good and bad, or never.

    **Not replayable:** a broker forgets what it has handed over, so what was not finished before a crash is
    gone, and Spark cannot read it. A broker also throws away what a slow subscriber leaves waiting; it tells
    nobody. No encryption, no password: across machines, put a tunnel in front.

    >>> Mqtt("sensors/#").schema.names
    ('received', 'topic', 'payload')
    """

    def __init__(
        self,
        topic: str,
        schema: SchemaLike | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 1883,
        format: LineFormatName | LineFormat | None = None,
        delimiter: str | None = None,
        qos: int = 1,
        limit: int | None = None,
        client_id: str = "",
        ordered: bool = False,
        connect_seconds: float = 10.0,
    ) -> None:
        with needed(Extra.MQTT, "an MQTT source"):
            from penstock.connectors.mqtt.broker import MqttBroker

        kind = line_format(format or ("text" if schema is None else "jsonl"), "messages", delimiter=delimiter)
        as_text = isinstance(kind, TextFormat)
        if as_text != (schema is None):
            hint = "leave schema out for format='text'; give one for all others"
            raise QueryError("schema and format do not fit", detail=f"got format '{kind.name}'", hint=hint)
        _check_topic(topic)
        if limit is not None and limit < 0:
            raise QueryError("limit must not be negative", detail=f"got {limit}", hint="None never ends")
        check_qos(qos)
        self._broker = MqttBroker(host, port, client_id, connect_seconds)
        self._topic, self._qos, self._limit = topic, qos, limit
        self._format = None if as_text else kind  # of the message; None: taken as it is
        self._schema = TEXT_SCHEMA if schema is None else Schema.of(schema)
        if not as_text:
            kind.check(self._schema)
        # The time of receipt never goes back.
        self._ordered = ordered or schema is None

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def ordered(self) -> bool:
        return self._ordered

    @property
    def bounded(self) -> bool:
        return self._limit is not None

    def key(self) -> tuple[Any, ...]:
        how = (self._qos, self._limit, self._format, self._ordered)
        return ("Mqtt", self._broker, self._topic, *how, self._schema)

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        parser = None if self._format is None else self._format.parser(self._schema, layout, strings)
        return [_MqttReader(self._broker, self._topic, self._qos, self._limit, parser, layout, strings)]


def _check_topic(topic: str) -> None:
    levels = topic.split("/")
    misplaced = any(len(level) > 1 and ("+" in level or "#" in level) for level in levels)
    if not topic or misplaced or "#" in levels[:-1]:
        hint = "'+' stands for one whole level and '#' for all that follow: 'sensors/+/heat', 'sensors/#'"
        raise QueryError("not a topic to subscribe to", detail=f"got {topic!r}", hint=hint)


def check_qos(qos: int) -> None:
    """Refuses a quality of service that sources and sinks do not speak."""
    if qos not in (0, 1):
        raise QueryError("qos is 0 or 1", detail=f"got {qos!r}", hint="1 is at least once, 0 at most once")


class _MqttReader(BufferedReader):
    def __init__(
        self,
        broker: MqttBroker,
        topic: str,
        qos: int,
        limit: int | None,
        parser: LineParser | None,
        layout: Layout,
        strings: StringPool,
    ) -> None:
        super().__init__(layout)
        self._parser = None if parser is None else MessageParser(parser)
        self._layout, self._strings = layout, strings
        self._left = limit  # messages still to come
        self._waiting: deque[tuple[int, str, bytes]] = deque()  # (received µs, topic, payload)
        self._received_us = 0
        self._polled_ns: int | None = None
        self._connection = broker.connect(self._on_message)
        self._connection.subscribe(topic, qos)

    def available(self, now_ns: int) -> int:
        self._polled_ns = now_ns
        if self._left != 0 and len(self._waiting) < _MOST_WAITING:
            self._connection.poll()
        # What is decoded stays first; the messages behind it count as well, but may turn out bad.
        return self.buffered or len(self._waiting) or (1 if self._bad else 0)

    @property
    def finished(self) -> bool:
        # Not before the bad records are taken: the last one may have been found without a read.
        return self._left == 0 and not (self.buffered or self._waiting or self._bad)

    def refill(self) -> None:
        messages = list(self._waiting)
        self._waiting.clear()
        if not messages:
            return
        first = self._records
        self._records += len(messages)
        if self._parser is None:
            self._hold_texts(messages, first)
        else:
            self._hold_parsed(self._parser, messages, first)

    def next_due_ns(self) -> int | None:
        return None if self._polled_ns is None or self._left == 0 else self._polled_ns + _POLL_NS

    def fileno(self) -> int | None:
        return self._connection.fileno()

    def close(self) -> None:
        self._connection.close()

    def _on_message(self, message: MQTTMessage) -> None:
        if self._left == 0:
            return
        if self._left is not None:
            self._left -= 1
        self._received_us = max(self._received_us, time.time_ns() // 1_000)
        self._waiting.append((self._received_us, message.topic, bytes(message.payload)))

    def _hold_texts(self, messages: list[tuple[int, str, bytes]], first: int) -> None:
        rows: list[tuple[int, str, str]] = []
        for number, (received_us, topic, payload) in enumerate(messages, first):
            try:
                rows.append((received_us, topic, payload.decode()))
            except UnicodeDecodeError as error:
                text = payload[:8_000].decode(errors="replace")
                self.reject(number, text, f"the message is not UTF-8: byte {error.start}")
        kinds = (pa.int64(), pa.string(), pa.string())
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        arrays: dict[str, Any] = {
            name: pa.array(list(values), kind)
            for name, values, kind in zip(TEXT_SCHEMA.names, columns, kinds, strict=True)
        }
        decoded = decode(arrays, len(rows), TEXT_SCHEMA, self._layout, self._strings)
        self.hold(decoded.columns, decoded.count)

    def _hold_parsed(self, parser: MessageParser, messages: list[tuple[int, str, bytes]], first: int) -> None:
        parsed = parser.parse([payload for _, _, payload in messages])
        for bad in parsed.bad:
            self.reject(first + bad.record, bad.text, bad.reason)
        self.hold(parsed.columns, parsed.count)
