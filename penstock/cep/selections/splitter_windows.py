"""Time and tuple windows as selections: their cost does not depend on how many of them overlap (Ti and Tu of
buffer limits table I)."""

from __future__ import annotations

import numpy as np

from penstock.cep.selections.selections import NOTHING, Cuts, EventBatch, State, closed_at_end
from penstock.operators.windows.panes import ranges
from penstock.query.errors import PenstockError


class TimeWindows:
    """Every window [k · slide, k · slide + size) that has an event, for all whole k.

    Figure 2 opens a window at the first event after a slide only: of the windows that begin in a gap of
    the stream it opens one at most, and events at a window's very end are in it. Here every window that
    the slide defines is opened, by its first event, and its end belongs to the next.
    """

    def __init__(self, size_us: int, slide_us: int) -> None:
        _check("size_us", size_us)
        _check("slide_us", slide_us)
        self.size_us, self.slide_us = size_us, slide_us
        self._reached: int | None = None  # windows up to this one have been opened, or never will be
        self._ends = NOTHING  # of the open ones, rising
        self._numbers = 0  # selections opened so far; those open are the last of them

    def cut(self, batch: EventBatch) -> Cuts:
        times = batch.times
        if len(times) == 0:
            return Cuts(self._numbers, NOTHING, NOTHING, NOTHING, NOTHING)
        last = times // self.slide_us
        first = (times - self.size_us) // self.slide_us + 1
        before = int(first[0]) - 1 if self._reached is None else self._reached
        reached = np.maximum.accumulate(np.concatenate(([before], last)))
        counts = np.maximum(last - np.maximum(first, reached[:-1] + 1) + 1, 0)
        opening = np.flatnonzero(counts)
        counts = counts[opening]
        windows = ranges(last[opening] - counts + 1, counts)
        self._reached = int(reached[-1])
        starts = batch.first + np.repeat(opening, counts)
        ends = np.concatenate((self._ends, windows * self.slide_us + self.size_us))
        stops = np.searchsorted(times, ends)
        done = int(np.searchsorted(stops, len(times)))  # ends rise, so do stops
        oldest, number = self._numbers - len(self._ends), self._numbers
        self._numbers += len(windows)
        self._ends = ends[done:]
        stops = batch.first + stops[:done]  # an event behind its end closes a window
        return Cuts(number, starts, np.arange(oldest, oldest + done), stops, stops)

    def finish(self, stop: int) -> Cuts:
        return _finish(self, self._numbers, stop)

    def export(self) -> State:
        reached = [] if self._reached is None else [self._reached]
        return {
            "reached": np.array(reached, np.int64),
            "ends": self._ends.copy(),
            "numbers": np.array([self._numbers]),
        }

    def restore(self, state: State) -> None:
        self._reached = int(state["reached"][0]) if len(state["reached"]) else None
        self._ends, self._numbers = state["ends"], int(state["numbers"][0])

    @property
    def open_selections(self) -> int:
        return len(self._ends)

    def forget_open(self) -> None:
        self._ends = NOTHING


class TupleWindows:
    """Every window of ``size`` events, one beginning at each ``slide``-th event."""

    def __init__(self, size: int, slide: int) -> None:
        _check("size", size)
        _check("slide", slide)
        self.size, self.slide = size, slide
        self._opened = 0
        self._closed = 0

    def cut(self, batch: EventBatch) -> Cuts:
        number, oldest = self._opened, self._closed
        # window j is [j · slide, j · slide + size), and it closes with the event before its stop
        self._opened = max(number, -(-batch.stop // self.slide))
        self._closed = max(oldest, min((batch.stop - self.size) // self.slide + 1, self._opened))
        closed = np.arange(oldest, self._closed)
        stops = closed * self.slide + self.size
        return Cuts(number, np.arange(number, self._opened) * self.slide, closed, stops, stops - 1)

    def finish(self, stop: int) -> Cuts:
        return _finish(self, self._opened, stop)

    def export(self) -> State:
        return {"counts": np.array([self._opened, self._closed])}

    def restore(self, state: State) -> None:
        self._opened, self._closed = (int(count) for count in state["counts"])

    @property
    def open_selections(self) -> int:
        return self._opened - self._closed

    def forget_open(self) -> None:
        self._closed = self._opened


def _finish(windows: TimeWindows | TupleWindows, opened: int, stop: int) -> Cuts:
    left = np.arange(opened - windows.open_selections, opened)
    windows.forget_open()
    return closed_at_end(opened, left, stop)


def _check(name: str, value: int) -> None:
    if value < 1:
        raise PenstockError(f"{name} must be positive: a window of selections got {value}")
