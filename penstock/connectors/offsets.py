"""Positions of sources whose events are there, or can be made at will: a position is an event's offset."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from penstock.connectors.pacing import Pace, Rate
from penstock.connectors.reader import ENDLESS, Positions

#: Events that are given out at once of a source without end, pace or limit.
STRETCH = 1 << 20


class OffsetPositions(Positions):
    """Positions of partitions that end at ``totals``.

    With a rate, events are due from now on, counted from ``start``: a run that goes on later does not rush
    through what would have been due meanwhile.

    >>> positions = OffsetPositions([10, 3])
    >>> positions.latest([0, 0], None), positions.latest([0, 0], 8), positions.latest([5, 3], 2)
    ([10, 3], [5, 3], [7, 3])
    """

    def __init__(
        self,
        totals: Sequence[int],
        rate: Rate | None = None,
        start: Sequence[int] | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        event_bytes: int | None = None,
    ) -> None:
        self._totals = list(totals)
        self._clock = clock
        self._event_bytes = event_bytes
        self._paces: list[Pace] = []
        self._began_unix_ns: list[int] = []  # per partition: when event 0 would have been waited for
        if rate is not None:
            now_ns, self.started_unix_ns = clock(), time.time_ns()
            for done in start or [0] * len(totals):
                pace = Pace(rate, len(totals))
                began_ns = pace.start(now_ns, done)
                self._paces.append(pace)
                self._began_unix_ns.append(self.started_unix_ns - (now_ns - began_ns))
        elif ENDLESS in self._totals:
            self.stretch = STRETCH

    @property
    def final(self) -> list[int] | None:
        return list(self._totals) if any(total < ENDLESS for total in self._totals) else None

    def latest(self, start: Sequence[int], limit: int | None) -> list[int]:
        return ready_within(start, self._ready(), self.stretch if limit is None else limit)

    def event_bytes(self, start: Sequence[int]) -> int | None:
        return self._event_bytes

    def waiting(self, start: Sequence[int]) -> int:
        ready = zip(start, self._ready(), strict=True)
        events = sum(max(0, end - begin) for begin, end in ready)
        return events if self.stretch is None else min(events, self.stretch)

    def describe(self, partition: int, start: int, end: int) -> int | None:
        """When the partition's pace began, in Unix time."""
        return self._began_unix_ns[partition] if self._paces else None

    def _ready(self) -> list[int]:
        if not self._paces:
            return self._totals
        now_ns = self._clock()
        return [min(a, pace.due(now_ns)) for a, pace in zip(self._totals, self._paces, strict=True)]


def ready_within(start: Sequence[int], ready: Sequence[int], limit: int | None) -> list[int]:
    """How far to read of what is ready so that no more than ``limit`` events are read in all.

    Partitions advance alike; what cannot be divided goes to those that are behind.

    >>> ready_within([0, 0, 4], [9, 2, 9], 8), ready_within([3, 2], [9, 9], 1), ready_within([5], [3], None)
    ([3, 2, 7], [3, 3], [5])
    """
    wanted = [max(0, end - begin) for begin, end in zip(start, ready, strict=True)]
    if limit is not None and sum(wanted) > limit:
        left = limit
        sharing = sorted(range(len(wanted)), key=lambda place: wanted[place], reverse=True)
        while wanted[sharing[-1]] <= left // len(sharing):
            left -= wanted[sharing.pop()]
        share, rest = divmod(left, len(sharing))
        for place in sharing:
            wanted[place] = share
        for place in sorted(sharing, key=lambda place: start[place])[:rest]:
            wanted[place] += 1
    return [begin + more for begin, more in zip(start, wanted, strict=True)]
