"""A key that alone is more than a task can have: found in samples, named, and said to be beyond routing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HotKey:
    """A key with its share of an operator's rows."""

    operator: str
    key: Any  # the key's values, as a user would write them
    share: float


def beyond_routing(keys: Iterable[HotKey], tasks: int) -> tuple[HotKey, ...]:
    """Those with more than a whole task's part of the rows, the hottest first.

    >>> [one.key for one in beyond_routing([HotKey("count", 7, 0.6), HotKey("count", 8, 0.4)], 2)]
    [7]
    """
    found = [one for one in keys if one.share * tasks > 1.0]
    return tuple(sorted(found, key=lambda one: -one.share))


def warning(hot: HotKey, tasks: int) -> str:
    """What users are told: the key, how much it is, and what would help."""
    return (
        f"step '{hot.operator}': key {hot.key!r} has {hot.share:.0%} of the events, more than one of "
        f"{tasks} tasks can take; no routing can help, since a key belongs to one task; write the step as a "
        "window aggregate, which is split and merged, or add a column to key_by"
    )
