"""Co-group: a user's function once per key and window, with the events of both sides in order."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.memory.edges import END_OF_TIME, START_OF_TIME
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.operators.base import Build, Operator
from penstock.operators.ordered_buffer import OrderedBuffer
from penstock.operators.rows import RowReader, RowWriter, UserFunction, hash_key
from penstock.operators.window_rows import KeyHash
from penstock.query.functions import Group
from penstock.query.graph import CoGroupSpec, Port
from penstock.state.keys import KeyWords
from penstock.state.tables import StateRows, TableFormat

_EMITTED_AT_ONCE = 4096  # rows collected as Python values before they become columns


class CoGroup(Operator):
    """Holds the events of both sides until the watermark closes their windows.

    Windows close in the order of their ends, the groups of one window in the order of their keys' hashes.
    A null key is a group like any other.
    """

    def __init__(self, build: Build) -> None:
        super().__init__(build)
        spec = build.node.spec
        assert isinstance(spec, CoGroupSpec)
        self._window = spec.window
        self._function = UserFunction(self.id, spec.function)
        output = build.outputs.get(Port.MAIN)
        self._writer = RowWriter(self._function, build.node.schema, output, self.strings)
        self._sides = [
            _Side(layout, self.strings, [pair[index] for pair in spec.on])
            for index, layout in enumerate(build.inputs)
        ]
        self._key_types = [
            build.inputs[0].field(left).dtype for left, _ in spec.on
        ]  # the right's are the same
        self.state_formats = (
            TableFormat("left", build.inputs[0].fields),
            TableFormat("right", build.inputs[1].fields),
        )
        self._closed: int | None = None  # the last window that closed; windows are numbered by start / slide

    def consume(self, index: int, columns: Columns, start: int, stop: int) -> int:
        self.divert_late(index, columns, start, stop)
        self._sides[index].held.add(columns, start, stop)
        return stop - start

    def on_watermark(self, watermark_us: int) -> None:
        size, slide = self._window.size_us, self._window.slide_us
        if watermark_us >= END_OF_TIME:
            last, until = None, END_OF_TIME
        else:
            last = (watermark_us - size) // slide  # the last window that ends by the watermark
            until = last * slide + size
        for side in self._sides:
            side.advance(until)
        while (first := self._first_event()) is not None:
            number = (first - size) // slide + 1  # the first window that holds the event
            if self._closed is not None:
                number = max(number, self._closed + 1)
            if last is not None and number > last:
                break
            self._close(number * slide, number * slide + size)
            self._closed = number
            for side in self._sides:
                side.drop((number + 1) * slide)
        self._emit()

    def _first_event(self) -> int | None:
        """The first event time among the events that are in order and still needed."""
        times = [side.first for side in self._sides if side.first is not None]
        return min(times, default=None)

    def _close(self, start: int, end: int) -> None:
        left, right = (side.groups(end) for side in self._sides)
        hashes = {key: hash_key(key, self._key_types) for key in (left | right)}
        for key, order in sorted(hashes.items(), key=lambda item: item[1]):
            group = Group(key, start, end, left.get(key, []), right.get(key, []))
            for number, row in enumerate(self._function.rows(group, group)):
                self._writer.add(row, group, end - 1, order, number)
            if self._writer.count >= _EMITTED_AT_ONCE:
                self._emit()

    def _emit(self) -> None:
        if self._writer.count:
            self.emit(*self._writer.take())

    def _state_rows(self) -> list[StateRows]:
        return [side.rows() for side in self._sides]

    def _restore(self, rows: list[Columns], watermark_us: int) -> None:
        for side, columns in zip(self._sides, rows, strict=True):
            side.held.add(columns, 0, len(columns[side.time]))
        if watermark_us > START_OF_TIME:  # windows that end by the watermark are done with
            self._closed = (watermark_us - self._window.size_us) // self._window.slide_us

    def reset(self) -> None:
        super().reset()
        for side in self._sides:
            side.clear()
        self._writer.clear()
        self._closed = None

    @property
    def state_bytes(self) -> int:
        return sum(side.bytes for side in self._sides)

    @property
    def open_windows(self) -> int:
        """Windows that hold an event, each counted once for all keys."""
        numbers: set[int] = set()
        size, slide = self._window.size_us, self._window.slide_us
        for times in (times for side in self._sides for times in side.times()):
            for latest in np.unique(times // slide).tolist():
                numbers.update(range(latest - (size - 1) // slide, latest + 1))
        return len({number for number in numbers if self._closed is None or number > self._closed})


class _Side:
    """One input: events still unordered, and those in order that an open window may need."""

    def __init__(self, layout: Layout, strings: StringPool, keys: list[str]) -> None:
        assert layout.time is not None
        self.time = layout.data(layout.time)
        self._layout = layout
        self._strings = strings
        self._words = KeyWords.of(layout, keys)
        self._events = RowReader(layout, strings)
        self._keys = RowReader(layout, strings, keys)
        self.held = OrderedBuffer(layout)
        self._ordered: Columns = layout.allocate(0)

    @property
    def first(self) -> int | None:
        times = self._ordered[self.time]
        return int(times[0]) if len(times) else None

    def advance(self, until_us: int) -> None:
        """Puts the events before ``until_us`` in order, behind those that already are."""
        columns, count = self.held.release(until_us)
        if count:
            parts = zip(self._ordered, columns, strict=True)
            self._ordered = tuple(np.concatenate(part) for part in parts)

    def drop(self, before_us: int) -> None:
        """Forgets events that no later window holds."""
        stop = _place(self._ordered[self.time], before_us)
        if stop:
            self._ordered = tuple(column[stop:] for column in self._ordered)

    def groups(self, end_us: int) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
        """The events before ``end_us`` by key."""
        rows = slice(0, _place(self._ordered[self.time], end_us))
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        keyed = zip(self._keys.keys(self._ordered, rows), self._events.read(self._ordered, rows), strict=True)
        for key, event in keyed:
            groups.setdefault(key, []).append(event)
        return groups

    def rows(self) -> StateRows:
        """All events that an open window may need, and the hashes of their keys."""
        parts = zip(self._ordered, self.held.rows(), strict=True)
        columns = tuple(np.concatenate(part) for part in parts)
        return columns, self._key_hash(self._words.encode(self._layout, columns, 0, len(columns[self.time])))

    def clear(self) -> None:
        """Forgets all events."""
        self.held.clear()
        self._ordered = self._layout.allocate(0)

    @cached_property
    def _key_hash(self) -> KeyHash:
        return KeyHash(self._words, self._strings)

    def times(self) -> list[NDArray[np.int64]]:
        return [*self.held.times(), self._ordered[self.time]]

    @property
    def bytes(self) -> int:
        return self.held.bytes + sum(column.nbytes for column in self._ordered)


def _place(times: NDArray[np.int64], time_us: int) -> int:
    """How many of the ascending ``times`` are before ``time_us``, which may not fit in an int64."""
    return len(times) if time_us > END_OF_TIME else int(np.searchsorted(times, time_us))
