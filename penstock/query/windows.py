"""Windows: which stretches of event time an aggregate, a join or a ranking is about."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from penstock.query.durations import Duration, duration_text, duration_us
from penstock.query.errors import QueryError, Writing


@dataclass(frozen=True)
class Sliding:
    """Windows ``[k·slide, k·slide + size)`` for every integer k; tumbling when slide equals size."""

    size_us: int
    slide_us: int

    @property
    def is_tumbling(self) -> bool:
        return self.size_us == self.slide_us

    @property
    def pane_us(self) -> int:
        """The longest stretch that every window holds whole or not at all."""
        return gcd(self.size_us, self.slide_us)

    def __str__(self) -> str:
        if self.is_tumbling:
            return f"tumbling {duration_text(self.size_us)}"
        return f"sliding {duration_text(self.size_us)} every {duration_text(self.slide_us)}"


@dataclass(frozen=True)
class Session:
    """Per key, events less than ``gap`` apart. The window ends ``gap`` after its last event."""

    gap_us: int

    def __str__(self) -> str:
        return f"session {duration_text(self.gap_us)}"


Window = Sliding | Session


def tumbling(size: Duration) -> Sliding:
    """Windows side by side: every event is in exactly one."""
    with Writing("tumbling"):
        size_us = _positive(size, "window size")
        return Sliding(size_us, size_us)


def sliding(size: Duration, every: Duration) -> Sliding:
    """Overlapping windows of ``size`` that start ``every`` so often."""
    with Writing("sliding"):
        size_us, slide_us = _positive(size, "window size"), _positive(every, "window slide")
        if slide_us > size_us:
            raise QueryError(
                "window slide must not exceed its size",
                detail=f"got size '{size}', slide '{every}'",
                hint="events in the gaps would be in no window: filter them out instead",
            )
        return Sliding(size_us, slide_us)


def session(gap: Duration) -> Session:
    """Windows that end when a key was quiet for ``gap``."""
    with Writing("session"):
        return Session(_positive(gap, "session gap"))


def _positive(value: Duration, what: str) -> int:
    us = duration_us(value, what)
    if us <= 0:
        raise QueryError(f"{what} must be positive", detail=f"got '{value}'", hint="write e.g. '10s'")
    return us
