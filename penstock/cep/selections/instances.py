"""An instance: one of the parallel copies of a detector, with the selections that it was given and the
events they share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.cep.selections.selections import NOTHING, EventBatch, Ints

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Matches:
    """What a detector found: row i belongs to selection ``of[i]`` of those it was given, and matched the
    events at ``positions[i]``, places in the columns it was given."""

    of: Ints
    positions: NDArray[np.int64]  # one row per match, one column per step of the pattern

    def __len__(self) -> int:
        return len(self.of)


class Detector(Protocol):
    """The correlation function f_ω: keeps nothing from one selection to the next (buffer limits IV-A).

    ``detect`` gets columns that hold every event of every selection once, and selection i as the
    rows [starts[i], stops[i]) of them. Matches of one selection come together and in an order that
    depends on its events only.
    """

    def detect(self, columns: Columns, starts: Ints, stops: Ints) -> Matches: ...


@dataclass(frozen=True)
class Found:
    """Matches of closed selections, in the words of the whole stream."""

    numbers: Ints  # of the selection, per match
    closers: Ints  # position of the event that closed that selection
    positions: NDArray[np.int64]  # of the events in the stream


@dataclass(frozen=True)
class Assigned:
    """Closed selections that one instance is to work on, in closing order."""

    numbers: Ints
    starts: Ints
    stops: Ints
    closers: Ints


class EventBuffer:
    """The events that someone may still need, in columns without gaps; each event is there once."""

    def __init__(self) -> None:
        self.first = 0
        self._batches: list[EventBatch] = []

    def add(self, batch: EventBatch) -> None:
        self._batches.append(batch)

    @property
    def events(self) -> int:
        return sum(len(batch) for batch in self._batches)

    @property
    def bytes(self) -> int:
        """Memory that the events take."""
        return sum(
            batch.times.nbytes + sum(np.asarray(column).nbytes for column in batch.columns.values())
            for batch in self._batches
        )

    def between(self, start: int, stop: int) -> EventBatch:
        """Events [start, stop), which must not have been discarded; a view where one batch has them all."""
        parts = [
            _part(batch, start, stop) for batch in self._batches if batch.stop > start and batch.first < stop
        ]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return EventBatch(start, NOTHING)
        columns = {
            name: np.concatenate([np.asarray(part.columns[name]) for part in parts])
            for name in parts[0].columns
        }
        return EventBatch(start, np.concatenate([part.times for part in parts]), columns)

    def discard(self, before: int) -> None:
        """Nobody needs the events before this position any more; whole batches are freed."""
        self._batches = [batch for batch in self._batches if batch.stop > before]
        self.first = before


def work_on(detector: Detector, assigned: Assigned, buffer: EventBuffer) -> Found:
    """One instance's work on the selections that were closed: overlapping ones read the same events."""
    if len(assigned.numbers) == 0:
        return Found(NOTHING, NOTHING, np.zeros((0, 0), np.int64))
    first = int(assigned.starts.min())
    events = buffer.between(first, int(assigned.stops.max()))
    columns = {**events.columns, "$time": events.times}
    matches = detector.detect(columns, assigned.starts - first, assigned.stops - first)
    return Found(assigned.numbers[matches.of], assigned.closers[matches.of], matches.positions + first)


def _part(batch: EventBatch, start: int, stop: int) -> EventBatch:
    low, high = max(start - batch.first, 0), min(stop - batch.first, len(batch))
    if low == 0 and high == len(batch):
        return batch
    columns = {name: column[low:high] for name, column in batch.columns.items()}
    return EventBatch(batch.first + low, batch.times[low:high], columns)
