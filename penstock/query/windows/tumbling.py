"""Windows side by side: sliding ones that start when the one before ends."""

from __future__ import annotations

from penstock.query.durations import Duration
from penstock.query.errors import Writing
from penstock.query.misuse import told_call
from penstock.query.windows.clock import clock
from penstock.query.windows.sliding import Sliding
from penstock.query.windows.window import positive


@told_call
def tumbling(size: Duration, *, offset: Duration | None = None, tz: str | None = None) -> Sliding:
    """Windows side by side: every event is in exactly one. They are counted from midnight, in UTC or in the
    time zone ``tz``, and start ``offset`` later."""
    with Writing("tumbling"):
        size_us = positive(size, "window size")
        return Sliding(size_us, size_us, clock(offset, tz, size_us))
