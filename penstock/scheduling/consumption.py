"""Consumption: how much of its queue a turn takes (edgewise 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from penstock.query.errors import PenstockError


class Consumption(Protocol):
    """From what waits for an operator to what its turn takes."""

    def events(self, pending: int) -> int: ...


@dataclass(frozen=True)
class All:
    """Everything that waits."""

    def events(self, pending: int) -> int:
        return pending

    def __str__(self) -> str:
        return "all"


@dataclass(frozen=True)
class Half:
    """Half of what waits, rounded up, so that the last event is taken too."""

    def events(self, pending: int) -> int:
        return (pending + 1) // 2

    def __str__(self) -> str:
        return "half"


@dataclass(frozen=True)
class AtMost:
    """No more than ``limit`` events.

    >>> AtMost(50).events(70), AtMost(50).events(3)
    (50, 3)
    """

    limit: int

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise PenstockError(f"a turn must take at least one event: got AtMost({self.limit})")

    def events(self, pending: int) -> int:
        return min(pending, self.limit)

    def __str__(self) -> str:
        return f"at most {self.limit}"


def consumption_of(given: str | int | Consumption) -> Consumption:
    """The consumption that users write as ``"all"``, ``"half"`` or a number of events."""
    if isinstance(given, int):
        return AtMost(given)
    if not isinstance(given, str):
        return given
    if given in ("all", "half"):
        return All() if given == "all" else Half()
    raise PenstockError(f"unknown consumption: '{given}'; write 'all', 'half' or a number of events")
