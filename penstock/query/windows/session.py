"""Windows that last as long as a key is not quiet."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.durations import Duration, duration_text
from penstock.query.errors import QueryError, Writing
from penstock.query.misuse import told_call
from penstock.query.windows.window import Window, declared, positive


@declared
@dataclass(frozen=True)
class Session(Window):
    """Per key, events less than ``gap`` apart. The window ends ``gap`` after its last event."""

    name = "session"
    mergeable = False  # sessions grow together: their parts depend on each other

    gap_us: int

    @property
    def length_us(self) -> int:
        return self.gap_us

    def check(self) -> None:
        if self.gap_us <= 0:
            raise QueryError(
                "window size must be positive", detail=f"got {self!r}", hint="write e.g. session('30m')"
            )

    def text(self) -> str:
        return f"session {duration_text(self.gap_us)}"


@told_call
def session(gap: Duration) -> Session:
    """Windows that end when a key was quiet for ``gap``."""
    with Writing("session"):
        return Session(positive(gap, "session gap"))
