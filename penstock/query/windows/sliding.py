"""Windows of one size that start so often: overlapping, or side by side."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

from penstock.query.durations import Duration, duration_text
from penstock.query.errors import QueryError, Writing
from penstock.query.misuse import told_call
from penstock.query.windows.clock import WindowClock, clock
from penstock.query.windows.window import Window, declared, positive

_PLAIN = WindowClock()


@declared
@dataclass(frozen=True)
class Sliding(Window):
    """Windows ``[k·slide, k·slide + size)`` for every integer k; tumbling when slide equals size."""

    name = "sliding"
    mergeable = True

    size_us: int
    slide_us: int
    clock: WindowClock = _PLAIN

    @property
    def is_tumbling(self) -> bool:
        return self.size_us == self.slide_us

    @property
    def pane_us(self) -> int:
        """The longest stretch that every window holds whole or not at all."""
        return gcd(self.size_us, self.slide_us)

    @property
    def length_us(self) -> int:
        return self.size_us

    def check(self) -> None:
        if min(self.size_us, self.slide_us) <= 0:
            raise QueryError(
                "window size must be positive", detail=f"got {self!r}", hint="write e.g. tumbling('10s')"
            )
        if self.slide_us > self.size_us:
            raise QueryError(
                "window slide must not exceed its size", detail=f"got {self!r}", hint="slide more often"
            )

    def text(self) -> str:
        if self.is_tumbling:
            return f"tumbling {duration_text(self.size_us)}{self.clock.text()}"
        return (
            f"sliding {duration_text(self.size_us)} every {duration_text(self.slide_us)}{self.clock.text()}"
        )

    def said(self) -> tuple[Any, ...]:
        return (self.name, self.version, self.size_us, self.slide_us, *self.clock.said())


@told_call
def sliding(
    size: Duration, every: Duration, *, offset: Duration | None = None, tz: str | None = None
) -> Sliding:
    """Overlapping windows of ``size`` that start ``every`` so often. They are counted from midnight, in UTC
    or in the time zone ``tz``, and start ``offset`` later."""
    with Writing("sliding"):
        size_us, slide_us = positive(size, "window size"), positive(every, "window slide")
        if slide_us > size_us:
            raise QueryError(
                "window slide must not exceed its size",
                detail=f"got size '{size}', slide '{every}'",
                hint="events in the gaps would be in no window: filter them out instead",
            )
        return Sliding(size_us, slide_us, clock(offset, tz, slide_us))
