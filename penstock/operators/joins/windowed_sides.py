"""What co-groups and group joins share: the events of two inputs, held until the watermark closes their
windows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.memory.edges import END_OF_TIME, START_OF_TIME
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.operators.run.base import Build, Operator
from penstock.operators.run.ordered_buffer import OrderedBuffer
from penstock.operators.windows.wall_clock import wall_clock
from penstock.operators.windows.window_rows import KeyHash
from penstock.query.windows import Sliding
from penstock.state.keys import KeyWords
from penstock.state.tables import StateFormat, StateRows


class WindowedSides(Operator):
    """Holds the events of both sides and closes windows in the order of their ends."""

    def __init__(self, build: Build, on: Sequence[tuple[str, str]], window: Sliding) -> None:
        super().__init__(build)
        self.window, self._clock = window, wall_clock(window)
        self.sides = [
            Side(layout, self.strings, [pair[index] for pair in on])
            for index, layout in enumerate(build.inputs)
        ]
        self.state_formats = (
            StateFormat("left", build.inputs[0].fields),
            StateFormat("right", build.inputs[1].fields),
        )
        self._closed: int | None = None  # the last window that closed; windows are numbered by start / slide

    @abstractmethod
    def close(self, start: int, end: int) -> None:
        """Makes the rows of a window ready; its events are those of ``sides`` before ``end``."""

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self.divert_late(index, columns, start, stop)
        self.sides[index].held.add(columns, start, stop)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        size, slide = self.window.size_us, self.window.slide_us
        if watermark_us >= END_OF_TIME:
            last, until = None, END_OF_TIME
        else:
            # the last window that ends by the watermark
            last = (self._clock.wall(watermark_us) - size) // slide
            until = self._clock.instants(last * slide + size)
        for side in self.sides:
            side.advance(until)
        while (first := self._first_event()) is not None:
            number = (self._clock.wall(first) - size) // slide + 1  # the first window that holds the event
            if self._closed is not None:
                number = max(number, self._closed + 1)
            if last is not None and number > last:
                break
            self.close(self._clock.instants(number * slide), self._clock.instants(number * slide + size))
            self._closed = number
            for side in self.sides:
                side.drop(self._clock.instants((number + 1) * slide))

    def _first_event(self) -> int | None:
        """The first event time among the events that are in order and still needed."""
        times = [side.first for side in self.sides if side.first is not None]
        return min(times, default=None)

    def _state_rows(self) -> list[StateRows]:
        return [side.rows() for side in self.sides]

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        for side, columns in zip(self.sides, rows, strict=True):
            side.held.add(columns, 0, len(columns[side.time]))
        if watermark_us > START_OF_TIME:  # windows that end by the watermark are done with
            wall_us = self._clock.wall(watermark_us)
            self._closed = (wall_us - self.window.size_us) // self.window.slide_us

    def reset(self) -> None:
        super().reset()
        for side in self.sides:
            side.clear()
        self._closed = None

    @property
    def state_bytes(self) -> int:
        return sum(side.bytes for side in self.sides)

    @property
    def open_windows(self) -> int:
        """Windows that hold an event, each counted once for all keys."""
        numbers: set[int] = set()
        size, slide = self.window.size_us, self.window.slide_us
        for times in (times for side in self.sides for times in side.times()):
            for latest in np.unique(self._clock.wall(times) // slide).tolist():
                numbers.update(range(latest - (size - 1) // slide, latest + 1))
        return len({number for number in numbers if self._closed is None or number > self._closed})


class Side:
    """One input: events still unordered, and those in order that an open window may need."""

    def __init__(self, layout: Layout, strings: StringPool, keys: Sequence[str]) -> None:
        assert layout.time is not None
        self.time = layout.data(layout.time)
        self.layout = layout
        self._strings = strings
        self._words = KeyWords.of(layout, keys)
        self.held = OrderedBuffer(layout)
        self.ordered: Columns = layout.allocate(0)

    @property
    def first(self) -> int | None:
        times = self.ordered[self.time]
        return int(times[0]) if len(times) else None

    def count(self, end_us: int) -> int:
        """How many of the events in order are before ``end_us``."""
        return _place(self.ordered[self.time], end_us)

    def advance(self, until_us: int) -> None:
        """Puts the events before ``until_us`` in order, behind those that already are."""
        columns, count = self.held.release(until_us)
        if count:
            parts = zip(self.ordered, columns, strict=True)
            self.ordered = tuple(np.concatenate(part) for part in parts)

    def drop(self, before_us: int) -> None:
        """Forgets events that no later window holds."""
        stop = _place(self.ordered[self.time], before_us)
        if stop:
            self.ordered = tuple(column[stop:] for column in self.ordered)

    def rows(self) -> StateRows:
        """All events that an open window may need, and the hashes of their keys."""
        parts = zip(self.ordered, self.held.rows(), strict=True)
        columns = tuple(np.concatenate(part) for part in parts)
        return columns, self._key_hash(self._words.encode(self.layout, columns, 0, len(columns[self.time])))

    def clear(self) -> None:
        """Forgets all events."""
        self.held.clear()
        self.ordered = self.layout.allocate(0)

    @cached_property
    def _key_hash(self) -> KeyHash:
        return KeyHash(self._words, self._strings)

    def times(self) -> list[NDArray[np.int64]]:
        return [*self.held.times(), self.ordered[self.time]]

    @property
    def bytes(self) -> int:
        return self.held.bytes + sum(column.nbytes for column in self.ordered)


def _place(times: NDArray[np.int64], time_us: int) -> int:
    """How many of the ascending ``times`` are before ``time_us``, which may not fit in an int64."""
    return len(times) if time_us > END_OF_TIME else int(np.searchsorted(times, time_us))
