"""The merger: one deterministic order with consecutive numbers, whoever found what and when (buffer
limits II-B)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.cep.instances import Found
from penstock.cep.selections import NOTHING, Ints


@dataclass(frozen=True)
class Ordered:
    """Matches in their final order."""

    sequence: Ints  # consecutive, from 0 on over the whole stream
    numbers: Ints
    closers: Ints
    positions: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.sequence)


class Merger:
    """Orders matches by (event that closed their selection, number of the selection, rank within it):
    the order in which one instance that works on selections as they close would give them.

    A match is held back until no instance can still find one before it: every instance says up to which
    closing event it is done.
    """

    def __init__(self) -> None:
        self._held: list[Found] = []
        self._sequence = 0

    @property
    def held(self) -> int:
        """Matches that wait for other instances."""
        return sum(len(found.numbers) for found in self._held)

    def add(self, found: Found) -> None:
        if len(found.numbers):
            self._held.append(found)

    def release(self, done: int) -> Ordered:
        """The matches of all selections closed by an event before position ``done``; every instance has come
        that far."""
        if not self._held:
            return Ordered(NOTHING, NOTHING, NOTHING, np.zeros((0, 0), np.int64))
        numbers = np.concatenate([found.numbers for found in self._held])
        closers = np.concatenate([found.closers for found in self._held])
        positions = np.concatenate([found.positions for found in self._held])
        order = np.lexsort((numbers, closers))  # stable: matches of one selection keep their order
        ready = int(np.searchsorted(closers[order], done))
        kept, order = order[ready:], order[:ready]
        self._held = [Found(numbers[kept], closers[kept], positions[kept])] if len(kept) else []
        sequence = np.arange(self._sequence, self._sequence + len(order))
        self._sequence += len(order)
        return Ordered(sequence, numbers[order], closers[order], positions[order])
