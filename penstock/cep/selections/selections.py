"""Selections: the stretches of a stream that a detector looks at whole, and how a splitter tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: What predicates keep from batch to batch.
State = dict[str, Ints]

NOTHING: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True)
class EventBatch:
    """Consecutive events of one stream, in the order of their event time.

    ``first`` is the position of the first of them: positions count all events of the stream from 0.
    """

    first: int
    times: Ints  # event time in microseconds, never falling
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def stop(self) -> int:
        """The position behind the last event."""
        return self.first + len(self.times)


@dataclass(frozen=True)
class Cuts:
    """What a batch of events did to the selections.

    A selection is the events of positions [start, stop). Selections are numbered in the order in which
    they open; a batch opens ``first_number`` and those that follow it.
    """

    first_number: int
    starts: Ints  # of the selections that opened, never falling
    closed: Ints  # numbers of those that closed, by (closer, number)
    stops: Ints  # where they end
    closers: Ints  # positions of the events that closed them, whether part of them or not


class Predicates(Protocol):
    """P_s and P_c of one kind of pattern, over many events at once, with state of their own.

    The result must not depend on how the stream is cut into batches.
    """

    def cut(self, batch: EventBatch) -> Cuts:
        """Which selections these events open and close."""

    def finish(self, stop: int) -> Cuts:
        """The stream ends at position ``stop``: whatever is open closes there."""

    @property
    def open_selections(self) -> int: ...

    def export(self) -> State:
        """All that it must know to go on, as arrays of whole numbers."""

    def restore(self, state: State) -> None:
        """Takes in what ``export`` gave, before its first batch."""


def in_closing_order(first_number: int, starts: Ints, closed: Ints, stops: Ints, closers: Ints) -> Cuts:
    """Cuts whose closed selections come in any order."""
    later = closers[1:] > closers[:-1]
    if not (later | ((closers[1:] == closers[:-1]) & (closed[1:] > closed[:-1]))).all():
        order = np.lexsort((closed, closers))
        closed, stops, closers = closed[order], stops[order], closers[order]
    return Cuts(first_number, starts, closed, stops, closers)


def closed_at_end(first_number: int, left: Ints, stop: int) -> Cuts:
    """The stream ended at ``stop`` with these selections open: its last event closes them."""
    return Cuts(first_number, NOTHING, left, np.full(len(left), stop), np.full(len(left), stop - 1))
