"""Consumers that a process keeps between two batches, so that the next one need not connect again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.connectors.kafka.feed import KafkaFeed

if TYPE_CHECKING:
    from penstock.connectors.kafka.reader import KafkaReader

_MOST_KEPT = 16
_kept: dict[Hashable, tuple[int, KafkaFeed]] = {}  # by partition: from which offset on it reads


@dataclass(frozen=True)
class KeptFeed:
    """The consumer of one partition, named by ``key``. Tasks of a process come one after another or take
    what they find: it is never in two hands."""

    key: Hashable

    def take(self, offset: int) -> KafkaFeed | None:
        """The one kept, if it goes on at this offset."""
        kept = _kept.pop(self.key, None)
        if kept is None:
            return None
        if kept[0] != offset:
            kept[1].close()
            return None
        return kept[1]

    def keep(self, feed: KafkaFeed, reader: KafkaReader) -> None:
        """For the next reader, which begins where this one has come to its end."""
        if not reader.finished:
            feed.close()
            return
        replaced = _kept.pop(self.key, None)
        _kept[self.key] = (reader.next_offset, feed)
        surplus = [] if replaced is None else [replaced[1]]
        while len(_kept) > _MOST_KEPT:
            surplus.append(_kept.pop(next(iter(_kept)))[1])
        for old in surplus:
            old.close()
