"""Consumption: how much of its queue a turn takes (edgewise 4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.errors import PenstockError

_NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class Consumption:
    """One of so many parts of what waits, rounded up so that the last event is taken too, and at most so many
    events.

    >>> Half(), AtMost(50)
    (Consumption(share=2, most=4611686018427387904), Consumption(share=1, most=50))
    """

    share: int = 1
    most: int = _NO_LIMIT

    def __post_init__(self) -> None:
        if self.most < 1:
            raise PenstockError(f"a turn must take at least one event: got AtMost({self.most})")

    @property
    def is_all(self) -> bool:
        """Whether a turn takes everything that waits."""
        return self == Consumption()

    def __str__(self) -> str:
        if self.is_all:
            return "all"
        return "half" if self.share == 2 else f"at most {self.most}"


def All() -> Consumption:  # noqa: N802
    """Everything that waits."""
    return Consumption()


def Half() -> Consumption:  # noqa: N802
    """Half of what waits."""
    return Consumption(share=2)


def AtMost(limit: int) -> Consumption:  # noqa: N802
    """No more than ``limit`` events."""
    return Consumption(most=limit)


def consumption_of(given: str | int | Consumption) -> Consumption:
    """The consumption that users write as ``"all"``, ``"half"`` or a number of events."""
    if isinstance(given, int):
        return AtMost(given)
    if not isinstance(given, str):
        return given
    if given in ("all", "half"):
        return All() if given == "all" else Half()
    raise PenstockError(f"unknown consumption: '{given}'; write 'all', 'half' or a number of events")
