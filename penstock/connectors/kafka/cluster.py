"""Where a Kafka cluster listens and how to present oneself: the client's settings, secrets by name."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer

from penstock.query.environment import Env, value_of
from penstock.query.errors import QueryError, RunError

LOG = logging.getLogger(__name__)
_SECRET = re.compile(r"password|secret|key\.pem|bearer\.token", re.IGNORECASE)
#: What a result's being right depends on.
_OURS = (
    "auto.offset.reset",
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "transactional.id",
)

Settings = Mapping[str, str | int | float | bool | Env]


@dataclass(frozen=True)
class KafkaCluster:
    """``settings`` are those of librdkafka, such as ``security.protocol``. A secret among them is never a
    text: what travels and is written down is its name in the environment."""

    servers: str
    settings: Settings = field(default_factory=dict)
    patience_s: float = 10.0

    def __post_init__(self) -> None:
        if not str(self.servers).strip():
            raise QueryError("Kafka needs servers", detail=f"got {self.servers!r}", hint="'host:9092'")
        for name, value in self.settings.items():
            if name in _OURS:
                raise QueryError("a setting of Kafka that Penstock has to choose", detail=f"got '{name}'")
            if _SECRET.search(name) and not isinstance(value, Env):
                raise QueryError(
                    "a secret stands in the environment, not in the program",
                    detail=f"setting '{name}' is a text",
                    hint=f"write '{name}': ps.env('KAFKA_PASSWORD')",
                )
        if self.patience_s <= 0:
            raise QueryError("connect_seconds must be positive", detail=f"got {self.patience_s}")

    def __str__(self) -> str:
        return f"the Kafka brokers at {self.servers}"

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for two that reach the same records in the same way."""
        return (self.servers, tuple(sorted(self.settings.items(), key=lambda entry: entry[0])))

    def consumer(self, **ours: Any) -> Consumer:
        """A client that reads what it is told to, and leaves no trace in the cluster."""
        own = {
            # Assigned by hand it joins no group, but the client wants a name for one.
            "group.id": "penstock",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
        }
        return Consumer(self.client_settings(own | ours), logger=LOG)

    def producer(self, **ours: Any) -> Producer:
        """A client that loses no record and doubles none while it lives."""
        return Producer(self.client_settings({"enable.idempotence": True} | ours), logger=LOG)

    def error(self, error: KafkaError, more: list[str] | None = None) -> RunError:
        """What went wrong, in words."""
        said = "; ".join([error.str(), *(more or [])])
        return RunError(f"{self} cannot be used: {said}")

    def client_settings(self, ours: Mapping[str, Any]) -> dict[str, Any]:
        """All settings of a client, with secrets: not for anybody to see."""
        given = {name: value_of(value) for name, value in self.settings.items()}
        return {"bootstrap.servers": self.servers, **given, **ours}
