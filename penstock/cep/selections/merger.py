"""The merger: one deterministic order with consecutive numbers, whoever found what and when (buffer limits
II-B)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.cep.selections.selections import NOTHING, Ints
from penstock.memory.edges import END_OF_TIME
from penstock.memory.layout import Columns


@dataclass(frozen=True)
class MatchPlaces:
    """Where matches stand in the order: one entry per match in each.

    ``closed_at`` never falls with ``closers``: it is the event time of the event that closed the selection.
    """

    closed_at: Ints
    closers: Ints  # position of that event in the stream
    numbers: Ints  # of the selection
    ranks: Ints  # within the selection


class Merger:
    """Orders matches by (event that closed their selection, number of the selection, rank within it):
    the order in which one instance that works on selections as they close would give them.

    A match is held back until no instance can still find one before it.
    """

    def __init__(self) -> None:
        self._held: list[tuple[MatchPlaces, Columns]] = []
        self.sequence = 0  # the number of the next match

    @property
    def held(self) -> int:
        """Matches that wait for other instances."""
        return sum(len(place.numbers) for place, _ in self._held)

    @property
    def bytes(self) -> int:
        return sum(column.nbytes for _, columns in self._held for column in columns)

    def add(self, place: MatchPlaces, columns: Columns) -> None:
        """Matches of one instance, with whatever columns they have; not copied."""
        if len(place.numbers):
            self._held.append((place, columns))

    def waiting(self) -> Columns | None:
        """The columns of all matches that are held back."""
        if not self._held:
            return None
        return tuple(
            np.concatenate(arrays) for arrays in zip(*(found for _, found in self._held), strict=True)
        )

    def release(self, before_us: int) -> tuple[Ints, Columns]:
        """The matches of all selections closed before this time, with their sequence numbers; every
        instance has come that far. ``END_OF_TIME`` releases everything."""
        if not self._held:
            return NOTHING, ()
        place = MatchPlaces(
            *(
                np.concatenate([getattr(one, name) for one, _ in self._held])
                for name in ("closed_at", "closers", "numbers", "ranks")
            )
        )
        columns = self.waiting() or ()
        order = np.lexsort((place.ranks, place.numbers, place.closers))
        ready = len(order)
        if before_us < END_OF_TIME:
            ready = int(np.searchsorted(place.closed_at[order], before_us))
        kept, order = order[ready:], order[:ready]
        left = MatchPlaces(place.closed_at[kept], place.closers[kept], place.numbers[kept], place.ranks[kept])
        self._held = []
        self.add(left, tuple(column[kept] for column in columns))
        sequence = np.arange(self.sequence, self.sequence + len(order))
        self.sequence += len(order)
        return sequence, tuple(column[order] for column in columns)
