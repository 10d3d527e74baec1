"""Where reading a topic begins and ends: at an edge of it, at a time, or at offsets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from penstock.connectors.kafka.admin import Admin
from penstock.query.errors import QueryError

#: ``"earliest"``, ``"latest"``, a time (a ``datetime``, or ISO 8601 text; without a zone it is UTC), or an
#: offset for each partition; partitions left out begin at the earliest.
Place = str | datetime | Mapping[int, int]


def checked(place: Place, name: str) -> Place:
    """The place with a text of a time as the time; a ``QueryError`` if it is none."""
    if isinstance(place, datetime) or place in ("earliest", "latest"):
        return place
    if isinstance(place, str):
        try:
            return datetime.fromisoformat(place)
        except ValueError:
            pass
    elif all(map(_is_number, (*place, *place.values()))):
        return dict(place)
    raise QueryError(
        f"{name} is no place in a topic",
        detail=f"got {place!r}",
        hint="write 'earliest', 'latest', a time such as '2026-01-31T08:00:00Z', or offsets {0: 125, 1: 98}",
    )


def resolved(admin: Admin, topic: str, place: Place, partitions: int) -> list[int]:
    """The offset of each partition that is meant now."""
    if isinstance(place, str):
        return admin.offsets(topic, partitions, place)
    if isinstance(place, datetime):
        moment = place if place.tzinfo is not None else place.replace(tzinfo=UTC)
        offsets = admin.offsets(topic, partitions, int(moment.timestamp() * 1_000))
        if -1 in offsets:  # nothing that late: what comes from now on
            latest = admin.offsets(topic, partitions, "latest")
            offsets = [b if a == -1 else a for a, b in zip(offsets, latest, strict=True)]
        return offsets
    earliest = admin.offsets(topic, partitions, "earliest")
    return [max(place.get(number, 0), first) for number, first in enumerate(earliest)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and value >= 0
