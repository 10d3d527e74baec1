"""What is reported when matches take their events away, without runs: at every event all is tried anew.

Who comes first decides what is left for the others, so the definition of a match does not settle this alone.
What it needs beside is kept here and nothing else: which events are gone, which events each start was
offered, and the most preferred match that each start has completed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from penstock.query.patterns.modes import AfterMatch, Contiguity
from tests.cep.patterns.oracle import Bindings, Key, Option, Todo, enumerate_matches, options, side

#: Which choice was made at each letter and at the end, as in ``preference``: smaller is preferred.
Ranks = tuple[tuple[int, int, int], ...]
_LATER = 1 << 40  # the number of an event that has not come


class Kind(IntEnum):
    OPEN = 0  # may go on
    WAITS = 1  # complete if no negated event comes before the deadline
    DONE = 2


@dataclass(frozen=True)
class Way:
    """One way to bind events that were offered to a start."""

    ranks: Ranks
    bound: Bindings
    kind: Kind


@dataclass
class Start:
    first: int
    offered: list[int] = field(default_factory=list)
    completed: Ranks | None = None  # nothing less preferred than this is looked at any more


def enumerate_consumed(key: Key) -> list[Bindings]:
    """The matches of one key in the order in which they are reported; their events are in one match each."""
    if key.spec.after is AfterMatch.PAST_LAST:
        return enumerate_matches(key)  # the next start is behind a match anyway: no event is ever in two
    return _Consumption(key).run()


class _Consumption:
    def __init__(self, key: Key) -> None:
        self.key, self.spec = key, key.spec
        self.any = self.spec.contiguity is Contiguity.ANY
        self.gone: set[int] = set()
        self.found: list[Bindings] = []
        self.starts: list[Start] = []
        self._held: dict[tuple[str, int, Bindings], bool] = {}

    def run(self) -> list[Bindings]:
        for index, (time, _, _) in enumerate(self.key.places):
            self.end_starts(time)
            if self.spec.within_events is not None:
                for start in [one for one in self.starts if index - one.first >= self.spec.within_events]:
                    self.end(start)
            self.offer(index)
        self.end_starts(None)
        return self.found

    def offer(self, index: int) -> None:
        """The older start is asked first; whoever takes the event, the others do not even see it."""
        for start in [*self.starts, Start(index)]:
            if index in self.gone:
                return
            start.offered.append(index)
            ways = self.ways(start)
            if start.first == index and ways:
                self.starts.append(start)
            done = [way for way in ways if way.kind is Kind.DONE]
            if done and not self.any:
                start.completed = done[0].ranks
                done = done if ways[0] is done[0] else []  # something preferred may still come
            if done:
                self.report(start, done[0])

    def end_starts(self, before: int | None) -> None:
        """Ends the starts whose deadlines are before a time, the earliest first; None: all."""
        due = [(self.key.deadline(one.first), number) for number, one in enumerate(self.starts)]
        passed = sorted((at, number) for at, number in due if before is None or at < before)
        for start in [self.starts[number] for _, number in passed]:
            self.end(start)

    def end(self, start: Start) -> None:
        complete = [way for way in self.ways(start) if way.kind is not Kind.OPEN]
        if complete:
            self.report(start, complete[0])
        elif start in self.starts:
            self.starts.remove(start)

    def report(self, start: Start, way: Way) -> None:
        self.found.append(way.bound)
        self.gone |= {index for _, index in way.bound}
        self.starts.remove(start)

    # -- every way of one start ------------------------------------------------------------------------

    def ways(self, start: Start) -> list[Way]:
        """Those whose events are all there still, the preferred first."""
        ways = [
            way
            for way in self.grow(start.offered, (), self.key.whole, ())
            if not any(index in self.gone for _, index in way.bound)
            and (start.completed is None or way.ranks <= start.completed)
        ]
        return sorted(ways, key=self.by_events if self.any else lambda way: way.ranks)

    def by_events(self, way: Way) -> list[tuple[int, int]]:
        """Earlier events before later ones, a longer match before its beginning."""
        taken = [(index, rank) for (_, index), (_, _, rank) in zip(way.bound, way.ranks, strict=False)]
        return [*taken, (len(self.key.rows), 0)]

    def grow(self, offered: list[int], bound: Bindings, todo: Todo, ranks: Ranks) -> Iterator[Way]:
        last = bound[-1][1] if bound else -1
        later = [index for index in offered if index > last]
        for place, rank, one in self.choices(todo):
            if one.name is not None:
                for count, index in enumerate(later if bound else offered[:1]):
                    between = later[:count] if bound else []
                    if self.may_skip(between, one, bound) and self.takes(one, index, between, bound):
                        chosen = (*ranks, (place, index, rank))
                        yield from self.grow(offered, (*bound, (one.name, index)), one.rest, chosen)
                if bound and self.may_skip(later, one, bound) and not self.broken(one, later, bound):
                    yield Way((*ranks, (place, _LATER, rank)), bound, Kind.OPEN)
            elif not one.without:
                if not self.any or not later:  # with any contiguity what is complete is decided at once
                    yield Way((*ranks, (place, 0, rank)), bound, Kind.DONE)
            elif not self.broken(one, later, bound):
                yield Way((*ranks, (place, 0, rank)), bound, Kind.WAITS)

    def choices(self, todo: Todo) -> list[tuple[int, int, Option]]:
        """What can come next, with its side of the end and its rank; what is less preferred than to end here
        is never chosen."""
        listed = options(todo)
        ends = [rank for rank, one in enumerate(listed) if one.name is None and not one.without]
        last = len(listed) if self.any or not ends else ends[0] + 1
        return [(side(listed, rank), rank, one) for rank, one in enumerate(listed[:last])]

    def may_skip(self, between: list[int], one: Option, bound: Bindings) -> bool:
        """Whether the contiguity lets these events be passed over on the way to an event."""
        if self.any or not between:
            return True
        if self.spec.contiguity is Contiguity.STRICT:
            return False
        return not any(self.holds(one.name, index, bound) for index in between)

    def takes(self, one: Option, index: int, between: list[int], bound: Bindings) -> bool:
        return self.holds(one.name, index, bound) and not self.broken(one, between, bound)

    def broken(self, one: Option, between: list[int], bound: Bindings) -> bool:
        return any(self.holds(name, index, bound) for name in one.without for index in between)

    def holds(self, name: Any, index: int, bound: Bindings) -> bool:
        at = (name, index, bound)
        if at not in self._held:
            self._held[at] = self.key.holds(*at)
        return self._held[at]
