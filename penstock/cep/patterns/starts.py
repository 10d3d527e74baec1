"""Starts: which events could begin a match, which instance each goes to, and what else that instance needs.

A selection is everything from a first event until its match must be over. It needs the events that a run
could take or watch for, or, where neighbours or numbers of events matter, all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.cep.selections.assignment import Assignment, assign
from penstock.cep.selections.selections import NOTHING, Ints
from penstock.query.patterns.automaton import ACCEPT, Automaton
from penstock.query.patterns.modes import Contiguity
from penstock.query.steps import MatchSpec

Flags = NDArray[np.bool_]

_NEVER = np.int64(2**63 - 1)
_NONE = -1  # as a position: there is none


@dataclass(frozen=True)
class Reach:
    """What a pattern needs of the stream, as far as a single event tells."""

    opening: int  # P_s: the events of the pattern that can be the first, as bits
    later: int  # those that a run may take, or watch for, behind its first event
    every: bool  # a run needs every event: they are counted, or must be neighbours
    breaks: bool  # P_c: an event that is none of ``later`` ends every run
    within_us: int | None
    within_events: int | None

    @classmethod
    def of(cls, spec: MatchSpec, automaton: Automaton) -> Reach:
        binds, follows = automaton.binds, automaton.follows
        opening = later = 0
        for position, listed in enumerate(follows):
            for one in listed:
                taken = 1 << binds[one.target] if one.target != ACCEPT else 0
                if position:
                    later |= taken | one.guard
                else:
                    opening |= taken
        is_strict = spec.contiguity is Contiguity.STRICT
        waits = any(place >= 0 for place in automaton.waits)  # for a deadline, whatever comes
        every = is_strict or spec.within_events is not None
        return cls(opening, later, every, is_strict and not waits, spec.within_us, spec.within_events)


@dataclass(frozen=True)
class Dealt:
    """Which events go to which instance: rows of a batch, instance by instance, each in order."""

    rows: Ints
    instances: Ints
    opens: Flags  # whether the row is a first event of that instance


@dataclass
class Starts:
    """Deals out first events, and keeps for every instance the last one that may still need events.

    A later first event reaches further than an earlier one, so the last is enough.
    """

    reach: Reach
    position: int = 0  # of the next event in the stream
    dealt: int = 0  # first events so far
    broken: int = _NONE  # the last position at which every run ended
    #: By instance: the position and the time of the last first event that it was given.
    last: dict[int, tuple[int, int]] = field(default_factory=dict)

    def deal(self, times: Ints, masks: Ints, degree: int) -> Dealt:
        """Takes the next events of the stream, in order, with ``degree`` instances registered."""
        reach, first, count = self.reach, self.position, len(times)
        starts = np.flatnonzero(masks & reach.opening)
        useful = masks & reach.later != 0
        wanted = np.arange(count) if reach.every else np.flatnonzero(useful)
        breaks = np.flatnonzero(~useful) if reach.breaks else NOTHING
        # The last position before each wanted event at which every run ended.
        broken = _last(breaks, first + breaks, wanted, self.broken)
        open_counts = np.zeros(degree, np.int64)
        owners = assign(Assignment.ROUND_ROBIN, len(starts), range(degree), open_counts, self.dealt)
        rows: list[Ints] = []
        instances: list[int] = []
        opens: list[Flags] = []
        for instance in sorted({*self.last, *np.unique(owners).tolist()}):
            mine = starts[owners == instance]
            position, time = self.last.get(instance, (_NONE, 0))
            begun = _last(mine, first + mine, wanted, position)
            since = _last(mine, times[mine], wanted, time)
            needed = wanted[self._reaches(begun, since, first + wanted, times[wanted], broken)]
            is_first = np.zeros(count, np.bool_)
            is_first[mine] = True
            is_sent = is_first.copy()
            is_sent[needed] = True
            rows.append(np.flatnonzero(is_sent))
            instances.append(instance)
            opens.append(is_first[rows[-1]])
            if len(mine):
                self.last[instance] = (first + int(mine[-1]), int(times[mine[-1]]))
        self.position, self.dealt = first + count, self.dealt + len(starts)
        self.broken = int(first + breaks[-1]) if len(breaks) else self.broken
        self._forget(int(times[-1]) if count else None)
        lengths = [len(one) for one in rows]
        return Dealt(
            np.concatenate([NOTHING, *rows]),
            np.repeat(np.array(instances, np.int64), lengths),
            np.concatenate([np.zeros(0, np.bool_), *opens]),
        )

    def _reaches(self, begun: Ints, since: Ints, at: Ints, times: Ints, broken: Ints) -> Flags:
        """Whether a selection that begins at ``begun`` needs the events at ``at``.

        A deadline belongs to the time within; the event that is one too many settles what is open.
        """
        reach = self.reach
        found: Flags = (begun != _NONE) & (begun >= broken)
        if reach.within_us is not None:
            found &= times <= since + np.minimum(reach.within_us, _NEVER - np.maximum(since, 0))
        if reach.within_events is not None:
            found &= at - begun <= reach.within_events
        return found

    def _forget(self, time: int | None) -> None:
        """Drops the instances that need no further event."""
        if time is None or not self.last:
            return
        begun = np.array([position for position, _ in self.last.values()], np.int64)
        since = np.array([began for _, began in self.last.values()], np.int64)
        count = len(begun)
        reaches = self._reaches(
            begun,
            since,
            np.full(count, self.position),
            np.full(count, time),
            np.full(count, self.broken),
        )
        self.last = {
            instance: last
            for (instance, last), stays in zip(self.last.items(), reaches.tolist(), strict=True)
            if stays
        }


def _last(places: Ints, values: Ints, at: Ints, before: int) -> Ints:
    """The value of the last of ``places`` (rising) before each of ``at``; ``before`` where there is none."""
    found = np.searchsorted(places, at) - 1
    if not len(places):
        return np.full(len(at), before, np.int64)
    return np.where(found >= 0, values[found], before)
