"""How far a topic can be read: a position is an offset in Kafka, 0 where reading begins."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from penstock.connectors.kafka.admin import Admin
from penstock.connectors.offsets import ready_within
from penstock.connectors.reader import ENDLESS, Positions

_LOG = logging.getLogger(__name__)
_LOOK_FOR_PARTITIONS_S = 60.0


class KafkaPositions(Positions):
    """``starts`` and ``ends`` are offsets; what is told as readable are whole transactions only."""

    def __init__(self, admin: Admin, topic: str, starts: Sequence[int], ends: Sequence[int] | None) -> None:
        self._admin, self._topic = admin, topic
        self._starts, self._ends = starts, ends
        self._high: list[int] = list(starts)
        self._growth = GrowthCheck(admin, topic, len(starts))

    @property
    def final(self) -> list[int] | None:
        return None if self._ends is None else list(self._ends)

    def latest(self, start: Sequence[int], limit: int | None) -> list[int]:
        self._growth.look()
        self._high = self._ready()
        begin = [max(a, b) for a, b in zip(start, self._starts, strict=True)]
        return ready_within(begin, [max(a, b) for a, b in zip(begin, self._high, strict=True)], limit)

    def waiting(self, start: Sequence[int]) -> int:
        return sum(
            max(0, high - max(begin, first))
            for high, begin, first in zip(self._high, start, self._starts, strict=True)
        )

    def _ready(self) -> list[int]:
        offsets = self._admin.offsets(self._topic, len(self._starts), "latest")
        ends = self._ends or [ENDLESS] * len(self._starts)
        return [min(a, b) for a, b in zip(offsets, ends, strict=True)]


class GrowthCheck:
    """Warns, once, when a topic has more partitions than are read."""

    def __init__(self, admin: Admin, topic: str, partitions: int) -> None:
        self._admin, self._topic, self._partitions = admin, topic, partitions
        self._due_s = time.monotonic() + _LOOK_FOR_PARTITIONS_S

    def look(self) -> None:
        """Asks the cluster, if it is time to."""
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        self._due_s = now_s + _LOOK_FOR_PARTITIONS_S
        partitions = self._admin.partitions(self._topic)
        if partitions > self._partitions:
            self._partitions = partitions
            _LOG.warning(
                "topic '%s' has %d partitions now; the new ones are read from the next start on",
                self._topic,
                partitions,
            )
