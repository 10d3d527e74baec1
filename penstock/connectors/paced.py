"""Readers whose events are there, or can be made at will, and that a pace may hold back."""

from __future__ import annotations

from penstock.connectors.pacing import Pace, Rate
from penstock.connectors.reader import Reader


class PacedReader(Reader):
    """A reader whose events are all there, or can be made at will, and that may be held back by a pace.

    ``begun``: for events that are not held back, the pace that they came at.
    """

    def __init__(
        self, partition: int, total: int, pace: Pace | None, start: int = 0, begun: Pace | None = None
    ) -> None:
        super().__init__(partition)
        self.offset = start
        self._total = total
        self._pace = pace
        self._came_at = pace or begun
        self._due = total if pace is None else 0  # events that may have been read by now

    def available(self, now_ns: int) -> int:
        if self._pace is not None:
            self._due = min(self._total, self._pace.due(now_ns))
        return self._due - self.offset

    @property
    def finished(self) -> bool:
        return self.offset >= self._total

    def created_ns(self) -> int | None:
        return None if self._came_at is None or self.offset == 0 else self._came_at.when(self.offset)

    def burst_ns(self) -> int | None:
        pace = self._pace
        return pace.when(self.offset + 1) if pace is not None and pace.in_bursts else None

    def next_due_ns(self) -> int | None:
        return None if self._pace is None or self.finished else self._pace.when(self.offset + 1)


def begun_pace(rate: Rate | None, partitions: int, began_unix_ns: int | None) -> Pace | None:
    """The pace at which the events of a range came, if it is known."""
    if rate is None or began_unix_ns is None:
        return None
    pace = Pace(rate, partitions)
    pace.start(began_unix_ns)
    return pace
