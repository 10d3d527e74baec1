"""Selections from one event to another: sequence, conjunction, aperiodic, periodic, and disjunction (;, ∧,
A, P and ∨ of buffer limits table I)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.cep.event_columns import NULL
from penstock.cep.selections.selections import (
    NOTHING,
    Cuts,
    EventBatch,
    State,
    closed_at_end,
    in_closing_order,
)
from penstock.cep.selections.splitter_kernels import UNLIMITED, cut_pairs, rehash
from penstock.query.errors import PenstockError

#: Which events of a batch are meant: a column and its values, or a function from columns to booleans.
Condition = Callable[[EventBatch], NDArray[np.bool_]]


@dataclass(frozen=True)
class OneOf:
    """The events whose ``column`` is one of these values; null is none of them."""

    column: str
    values: tuple[Any, ...]

    def __call__(self, batch: EventBatch) -> NDArray[np.bool_]:
        found = np.asarray(batch.columns[self.column])
        if len(self.values) == 1:
            holds = np.asarray(found == self.values[0], np.bool_)
        elif found.dtype == object:
            holds = np.array([value in self.values for value in found.tolist()], np.bool_)
        else:
            holds = np.isin(found, self.values)
        nulls = batch.columns.get(self.column + NULL)
        return holds if nulls is None else holds & ~nulls


def one_of(column: str, *values: Any) -> Condition:
    """The events whose ``column`` is one of these values."""
    return OneOf(column, values)


def read_by(*conditions: Condition | None) -> frozenset[str]:
    """The columns that conditions are known to read: of functions that is not known."""
    return frozenset(condition.column for condition in conditions if isinstance(condition, OneOf))


class _Pairs:
    """Selections that open and close by the flags of events, per key if there is one.

    Among the flags, P_c is looked at before P_s: an event that does both ends one selection and begins
    another.
    """

    #: The columns that it is known to read.
    columns: frozenset[str] = frozenset()

    def __init__(self, by: str | None, within_us: int | None, includes_close: bool) -> None:
        if within_us is not None and within_us < 0:
            raise PenstockError(f"within must not be negative: a selection got {within_us} us")
        self.by = by
        self._within_us = UNLIMITED if within_us is None else within_us
        self._includes_close = includes_close
        self._numbers = 0
        self._entries = _Entries(1024)

    def flags(self, batch: EventBatch) -> NDArray[np.uint8]:
        raise NotImplementedError

    def cut(self, batch: EventBatch) -> Cuts:
        flags = self.flags(batch)
        keys = np.zeros(len(batch), np.int64)
        if self.by is not None:
            keys = np.ascontiguousarray(batch.columns[self.by], np.int64)
        opening = int(np.count_nonzero(flags & 1) + np.count_nonzero(flags & 2))
        entries = self._entries = self._entries.with_room(opening)
        starts = np.empty(opening, np.int64)
        closed, stops, closers = (np.empty(entries.open + opening, np.int64) for _ in range(3))
        entries.count, entries.oldest, opened, done = _cut(
            flags,
            keys,
            np.ascontiguousarray(batch.times, np.int64),
            batch.first,
            self._within_us,
            self._includes_close,
            self._numbers,
            entries.count,
            entries.oldest,
            *entries.arrays,
            starts,
            closed,
            stops,
            closers,
        )
        entries.open += opened - done
        number = self._numbers
        self._numbers += opened
        return in_closing_order(number, starts[:opened], closed[:done], stops[:done], closers[:done])

    def finish(self, stop: int) -> Cuts:
        left = self._entries.left()
        self._entries = _Entries(1024)
        return closed_at_end(self._numbers, left, stop)

    def export(self) -> State:
        return {"numbers": np.array([self._numbers]), **self._entries.export()}

    def restore(self, state: State) -> None:
        self._numbers = int(state["numbers"][0])
        self._entries = _Entries.of(state)

    @property
    def open_selections(self) -> int:
        return self._entries.open


class Sequence(_Pairs):
    """first ; last: from an event for which ``first`` holds to the next one for which ``last`` holds.

    by: only events with the same value of this (whole-number) column belong together.
    within_us: a selection ends at the first event later than this after its start, if nothing else ended it.
        Without ``last`` it ends so only, and holds every event that can follow the first in time.
    includes_close: whether the event that closes a selection is part of it.
    """

    def __init__(
        self,
        first: Condition,
        last: Condition | None = None,
        *,
        by: str | None = None,
        within_us: int | None = None,
        includes_close: bool = True,
    ) -> None:
        if last is None and within_us is None:
            raise PenstockError("a sequence never ends: give it a last event, or within_us")
        super().__init__(by, within_us, includes_close)
        self._first, self._last = first, last
        self.columns = read_by(first, last) | ({by} if by is not None else set())

    def flags(self, batch: EventBatch) -> NDArray[np.uint8]:
        flags = self._first(batch).astype(np.uint8)
        if self._last is not None:
            flags |= self._last(batch).astype(np.uint8) << 2
        return flags


class Aperiodic(Sequence):
    """A(first, middle, last): every ``middle`` between a first and the next last. The selection is the
    sequence's; which of its events count is the detector's matter."""


class Periodic(Sequence):
    """P(first, every, last): a tick every ``every_us`` from a first to the next last.

    The ticks are not events of the stream; :meth:`ticks` says where in a selection they fall.
    """

    def __init__(
        self, first: Condition, last: Condition | None = None, *, every_us: int, **others: Any
    ) -> None:
        if every_us < 1:
            raise PenstockError(f"every_us must be positive: a periodic selection got {every_us}")
        super().__init__(first, last, **others)
        self.every_us = every_us

    def ticks(self, start_us: int, end_us: int) -> NDArray[np.int64]:
        """The times of all ticks after the start, up to and including the end."""
        return np.arange(start_us + self.every_us, end_us + 1, self.every_us)


class Conjunction(_Pairs):
    """left ∧ right, in either order: from an event of one kind to the next one of the other kind."""

    def __init__(
        self,
        left: Condition,
        right: Condition,
        *,
        by: str | None = None,
        within_us: int | None = None,
        includes_close: bool = True,
    ) -> None:
        super().__init__(by, within_us, includes_close)
        self._left, self._right = left, right
        self.columns = read_by(left, right) | ({by} if by is not None else set())

    def flags(self, batch: EventBatch) -> NDArray[np.uint8]:
        left, right = self._left(batch).astype(np.uint8), self._right(batch).astype(np.uint8)
        # an event of both kinds is a conjunction with what is open, and opens as a left one
        return (left | (right & ~left & 1) << 1 | right << 2 | left << 3).astype(np.uint8)


class Disjunction:
    """left ∨ right: every such event is a selection of its own."""

    def __init__(self, *conditions: Condition) -> None:
        if not conditions:
            raise PenstockError("a disjunction needs at least one condition")
        self._conditions = conditions
        self.columns = read_by(*conditions)
        self._numbers = 0

    def cut(self, batch: EventBatch) -> Cuts:
        found = self._conditions[0](batch)
        for condition in self._conditions[1:]:
            found = found | condition(batch)
        starts = batch.first + np.flatnonzero(found)
        number = self._numbers
        self._numbers += len(starts)
        return Cuts(number, starts, np.arange(number, self._numbers), starts + 1, starts)

    def finish(self, stop: int) -> Cuts:
        return Cuts(self._numbers, NOTHING, NOTHING, NOTHING, NOTHING)

    def export(self) -> State:
        return {"numbers": np.array([self._numbers])}

    def restore(self, state: State) -> None:
        self._numbers = int(state["numbers"][0])

    @property
    def open_selections(self) -> int:
        return 0


_cut: Any = cut_pairs  # its arrays come as one tuple, which a type checker cannot count

_PLACES = 5  # which array says whether an entry is open
_NAMES = {0: "entry_numbers", 1: "start_times", 2: "keys", 4: "sides", _PLACES: "starts"}
_KEPT = (0, 1, 2, 4, _PLACES)  # the chains are made anew


@dataclass
class _Entries:
    """The kernel's arrays: entries in the order of opening, and the table of their keys."""

    capacity: int
    slots: int = 0
    count: int = 0
    oldest: int = 0
    open: int = 0
    keys_seen: int = 0  # at most; the table has room for so many

    def __post_init__(self) -> None:
        size = self.capacity
        self.slots = 1 << int(np.ceil(np.log2(2 * size)))
        numbers, start_times, keys, following, places = (np.zeros(size, np.int64) for _ in range(5))
        sides = np.zeros(size, np.int8)
        table = (np.zeros(self.slots, np.int64), np.full((self.slots, 2), -2, np.int64))
        self.arrays: tuple[NDArray[Any], ...] = (
            numbers,
            start_times,
            keys,
            following,
            sides,
            places,
            *table,
        )

    def with_room(self, opening: int) -> _Entries:
        """Itself, or one with as many more entries and keys where only open entries are left."""
        self.keys_seen += opening
        if self.count + opening <= self.capacity and self.keys_seen <= self.capacity:
            return self
        bigger = _Entries(max(1024, 2 * (self.open + opening)))
        rows = np.flatnonzero(self.arrays[_PLACES][: self.count] >= 0)
        for place in _KEPT:
            bigger.arrays[place][: len(rows)] = self.arrays[place][rows]
        rehash(len(rows), *bigger.arrays)
        bigger.count = bigger.open = len(rows)
        bigger.keys_seen = len(rows) + opening
        return bigger

    def export(self) -> State:
        """The open entries, in the order of opening."""
        rows = np.flatnonzero(self.arrays[_PLACES][: self.count] >= 0)
        return {_NAMES[place]: self.arrays[place][rows].astype(np.int64) for place in _KEPT}

    @classmethod
    def of(cls, state: State) -> _Entries:
        count = len(state[_NAMES[_PLACES]])
        entries = cls(max(1024, 2 * count))
        for place in _KEPT:
            entries.arrays[place][:count] = state[_NAMES[place]]
        rehash(count, *entries.arrays)
        entries.count = entries.open = entries.keys_seen = count
        return entries

    def left(self) -> NDArray[np.int64]:
        """The numbers of the open selections, rising."""
        still_open = self.arrays[_PLACES][: self.count] >= 0
        return self.arrays[0][: self.count][still_open]
