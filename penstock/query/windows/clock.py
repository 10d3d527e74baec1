"""How windows count time: in UTC, or as clocks on the wall of a place show it."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from penstock.query.durations import Duration, duration_text, duration_us
from penstock.query.errors import QueryError


@dataclass(frozen=True)
class WindowClock:
    """Windows start at multiples of their slide and ``offset_us`` on this clock, from midnight of 1970-01-01.

    A window starts when the clock first shows its start or a later time, and ends likewise: so a day has 23
    hours when clocks are put forward, and 25 when they are put back, and every moment is in one day.
    """

    offset_us: int = 0
    zone: str | None = None

    @property
    def is_plain(self) -> bool:
        return self == WindowClock()

    def text(self) -> str:
        """What people read behind a window: nothing if it is plain."""
        offset = f", offset {duration_text(self.offset_us)}" if self.offset_us else ""
        return offset + (f" in {self.zone}" if self.zone is not None else "")

    def said(self) -> tuple[int | str | None, ...]:
        """What it means to a checkpoint; nothing if it is plain."""
        return () if self.is_plain else (self.offset_us, self.zone)


def clock(offset: Duration | None, tz: str | None, slide_us: int) -> WindowClock:
    """The clock of windows that start every ``slide_us``."""
    offset_us = 0 if offset is None else duration_us(offset, "window offset")
    if tz is not None:
        try:
            ZoneInfo(tz)
        except Exception:  # it raises whatever it comes across
            raise QueryError(
                "a window's tz must be a time zone that this machine knows",
                detail=f"got {tz!r}",
                hint="write e.g. tz='Europe/Berlin'; the package tzdata has all of them",
            ) from None
    return WindowClock(offset_us % slide_us, tz)
