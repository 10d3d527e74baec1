"""Records of a Kafka topic."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from penstock.connectors.files.source import SchemaLike
from penstock.connectors.formats.line_format import LineFormat
from penstock.connectors.formats.registry import LineFormatName, line_format
from penstock.connectors.formats.text import TextFormat
from penstock.connectors.kafka.admin import Admin
from penstock.connectors.kafka.cluster import KafkaCluster, Settings
from penstock.connectors.kafka.feed import KafkaFeed
from penstock.connectors.kafka.kept import KeptFeed
from penstock.connectors.kafka.parts import parts_of
from penstock.connectors.kafka.positions import KafkaPositions
from penstock.connectors.kafka.reader import KafkaReader
from penstock.connectors.kafka.records import RecordForm, RecordParser
from penstock.connectors.kafka.start import Place, checked, resolved
from penstock.connectors.reader import ENDLESS, NodeSource, Positions, Reader, Resume
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.types import Schema
from penstock.state.files import Folder

#: The columns of records that are taken as they are.
TEXT_COLUMNS = {"timestamp": "timestamp", "key": "key", "value": "value"}
_NOTE = "span.json"
_TEXT_SCHEMA = Schema.of({"timestamp": "timestamp", "key": "string?", "value": "string?"})


@dataclass(frozen=True)
class _Span:
    """Where a run reads each partition, settled once: a restart reads the same."""

    starts: tuple[int, ...]
    ends: tuple[int, ...] | None


class Kafka(NodeSource):
    """The records of ``topic``: values by ``format``, each a JSON object unless it says otherwise.

    ``columns`` says which columns of the schema are other parts of the record: ``"key"``, ``"timestamp"``,
    ``"header:NAME"``, ``"partition"``, ``"offset"``, or ``"value"`` for the value as text. Without a schema
    the columns are ``timestamp``, ``key`` and ``value``.

    ``start`` is ``"earliest"``, ``"latest"``, a time, or an offset for each partition; ``until`` the same,
    and the source ends there; None never ends. A run that goes on from a checkpoint goes on where it was,
    whatever ``start`` says: positions are in the checkpoint, and nothing is committed to Kafka.

    ``settings`` are those of librdkafka, such as ``{"security.protocol": "sasl_ssl", "sasl.mechanism":
    "PLAIN", "sasl.username": "me", "sasl.password": ps.env("KAFKA_PASSWORD")}``.

    >>> Kafka("payments", servers="127.0.0.1:9092").schema.names
    ('timestamp', 'key', 'value')
    """

    def __init__(
        self,
        topic: str,
        schema: SchemaLike | None = None,
        *,
        servers: str,
        format: LineFormatName | LineFormat = "jsonl",
        columns: Mapping[str, str] | None = None,
        start: Place = "earliest",
        until: Place | None = None,
        settings: Settings | None = None,
        ordered: bool = False,
        connect_seconds: float = 10.0,
    ) -> None:
        if not topic:
            raise QueryError("not a topic", detail=f"got {topic!r}", hint="one topic by its name")
        self._schema = _TEXT_SCHEMA if schema is None else Schema.of(schema)
        parts = parts_of(self._schema, TEXT_COLUMNS if schema is None else columns or {})
        of_value = RecordForm(self._schema, None, parts).of_value
        values = line_format(format, "records") if len(of_value) else None
        if isinstance(values, TextFormat):
            # As text a value may hold line ends, so it is a part like the key.
            values.check(of_value)
            parts += parts_of(of_value, {of_value.names[0]: "value"})
            values = None
        elif values is not None:
            values.check(of_value)
        self._form = RecordForm(self._schema, values, parts)
        self._cluster = KafkaCluster(servers, dict(settings or {}), connect_seconds)
        self._topic, self._ordered = topic, ordered
        self._start = checked(start, "start")
        self._until = None if until is None else checked(until, "until")
        self._span: _Span | None = None
        self._planned: _Span | None = None  # of the run in this process that has a checkpoint
        self._partitions: int | None = None

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def ordered(self) -> bool:
        return self._ordered

    @property
    def bounded(self) -> bool:
        return self._until is not None

    @property
    def partitions(self) -> int:
        if self._span is not None:
            return len(self._span.starts)
        if self._partitions is None:
            self._partitions = Admin(self._cluster).partitions(self._topic)
        return self._partitions

    @property
    def grows(self) -> bool:
        return True

    def key(self) -> tuple[Any, ...]:
        places = (repr(self._start), repr(self._until), self._ordered)
        return ("Kafka", self._cluster.key, self._topic, *places, self._form)

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        span = self._span or self._settled(Admin(self._cluster))
        feed = KafkaFeed(self._cluster, self._topic, users=len(span.starts))
        parser = RecordParser(self._form, layout, strings)
        ends = span.ends or (ENDLESS,) * len(span.starts)
        return [
            KafkaReader(feed, parser, layout, number, start, end)
            for number, (start, end) in enumerate(zip(span.starts, ends, strict=True))
        ]

    def positions(self, journal: str | None = None, start: Sequence[int] | None = None) -> Positions:
        admin = Admin(self._cluster)
        span = self._span
        if span is None and journal is not None:
            span = self._planned = self._noted(admin, Folder(journal))
        span = span or self._settled(admin)
        return KafkaPositions(admin, self._topic, span.starts, span.ends)

    def open_range(
        self,
        partition: int,
        resume: Resume,
        end: int,
        layout: Layout,
        strings: StringPool,
        hint: Any = None,
    ) -> Reader:
        span = self._span or self._planned or self._settled(Admin(self._cluster))
        start = max(resume.position, span.starts[partition])
        parser = RecordParser(self._form, layout, strings)
        kept = KeptFeed((self._cluster.key, self._topic, partition))
        feed = kept.take(start) or KafkaFeed(self._cluster, self._topic)
        return KafkaReader(
            feed,
            parser,
            layout,
            partition,
            start,
            end,
            resume,
            patience_s=self._cluster.patience_s,
            close=lambda reader: kept.keep(feed, reader),
        )

    def shipped(self, folder: str) -> NodeSource:
        """Settled where it begins and ends, once for all runs of a checkpoint."""
        place, prefix = Folder(folder), f"kafka-{self._digest}-"
        numbers = sorted(int(name[len(prefix) : -5]) for name in place.names() if name.startswith(prefix))
        known: dict[str, Any] = {}
        if numbers:
            known = json.loads(bytes(place.read(f"{prefix}{numbers[-1]}.json")))
        span = self._settled(Admin(self._cluster), known.get("starts", ()), known.get("ends"))
        # Under a new name: what earlier runs have handed over is removed when this one begins.
        following = numbers[-1] + 1 if numbers else 0
        text = json.dumps({"starts": span.starts, "ends": span.ends})
        place.write(f"{prefix}{following}.json", text.encode())
        settled = copy(self)
        settled._span = span
        return settled

    def _noted(self, admin: Admin, journal: Folder) -> _Span:
        """As an earlier run of the checkpoint has settled it."""
        known: dict[str, Any] = json.loads(bytes(journal.read(_NOTE))) if journal.exists(_NOTE) else {}
        span = self._settled(admin, known.get("starts", ()), known.get("ends"))
        if span.starts != tuple(known.get("starts", ())):
            journal.write(_NOTE, json.dumps({"starts": span.starts, "ends": span.ends}).encode())
        return span

    def _settled(self, admin: Admin, starts: Sequence[int] = (), ends: Sequence[int] | None = None) -> _Span:
        """Where to read, as far as an earlier run has not settled it; new partitions from their beginning."""
        count = len(starts) if ends is not None else self.partitions
        if not starts:
            starts = resolved(admin, self._topic, self._start, count)
            if self._until is not None:
                ends = resolved(admin, self._topic, self._until, count)
                ends = [max(a, b) for a, b in zip(starts, ends, strict=True)]
        starts = [*starts, *[0] * (count - len(starts))]
        return _Span(tuple(starts), None if ends is None else tuple(ends))

    @property
    def _digest(self) -> str:
        return hashlib.sha256(repr(self.key()).encode()).hexdigest()[:16]
