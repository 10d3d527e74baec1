"""State that nothing ever drops: its size is told when it is large, and each time that it has doubled."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

_log = logging.getLogger(__name__)

#: From this size on users are told.
FIRST_BYTES = 64 << 20


@dataclass(frozen=True)
class Remembered:
    """What an operator keeps for ever."""

    keys: int
    bytes: int

    def __add__(self, other: Remembered) -> Remembered:
        return Remembered(self.keys + other.keys, self.bytes + other.bytes)


def is_due(size_bytes: int, told_bytes: int) -> bool:
    """Whether users are told of a size, after they were told of another; 0: of none.

    >>> is_due(FIRST_BYTES - 1, 0), is_due(FIRST_BYTES, 0), is_due(2 * FIRST_BYTES - 1, FIRST_BYTES)
    (False, True, False)
    """
    return size_bytes >= max(FIRST_BYTES, 2 * told_bytes)


def warning(step: str, remembered: Remembered) -> str:
    """What users are told: the step, how much it is, and what would end it."""
    size = f"{remembered.keys:,} keys for ever, {remembered.bytes >> 20:,} MiB"
    return (
        f"step '{step}' remembers {size}, and grows with each new one; "
        "where duplicates come within a bounded time, write e.g. deduplicate(..., within='1h')"
    )


class EndlessState:
    """The sizes that the user of one run was told of, by step."""

    def __init__(self) -> None:
        self._told_bytes: dict[str, int] = {}

    def look(self, steps: Mapping[str, Remembered]) -> None:
        """Tells of what has grown so much."""
        for step, remembered in steps.items():
            if is_due(remembered.bytes, self._told_bytes.get(step, 0)):
                self._told_bytes[step] = remembered.bytes
                _log.warning("%s", warning(step, remembered))
