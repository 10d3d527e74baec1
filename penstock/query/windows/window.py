"""What a window must say of itself before it exists: which stretches of event time a step is about."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from penstock.query.durations import Duration, duration_us
from penstock.query.errors import QueryError
from penstock.query.word import Word, declared

__all__ = ["WINDOWS", "Window", "declared", "positive"]

#: All that are declared, by name.
WINDOWS: dict[str, type[Window]] = {}


class Window(Word):
    """One kind of window. Which operator aggregates over it is registered there, by its class; they fail
    at import for a window that they do not know.
    """

    word = "window"
    words = WINDOWS
    answers = ("name", "mergeable")

    #: Whether parts of the input can be aggregated apart, and the partial states merged.
    mergeable: ClassVar[bool]

    @property
    @abstractmethod
    def length_us(self) -> int:
        """How long events wait for it to close, at least."""

    @abstractmethod
    def check(self) -> None:
        """Raises ``QueryError`` if there is no such window."""

    def __str__(self) -> str:
        return self.text()


def positive(value: Duration, what: str) -> int:
    """A duration in microseconds that is more than nothing."""
    us = duration_us(value, what)
    if us <= 0:
        raise QueryError(f"{what} must be positive", detail=f"got '{value}'", hint="write e.g. '10s'")
    return us
