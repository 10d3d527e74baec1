"""Accumulators: the fixed-size state of aggregates per group, as arrays, and the code that works on them.

Each aggregate has a few arrays indexed by group. Generated kernels take events in (``update``) and put one
group into another (``merge``); when a group is complete, numpy finishes many at once (``finish``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.builder import Code
from penstock.kernels.code import SCALAR
from penstock.memory.layout import Columns
from penstock.operators.moments import variance_of
from penstock.query.aggregates import AggregateKind
from penstock.query.types import DataType

#: Functions that the generated text calls: a kernel's source needs this import.
IMPORTS = "from penstock.operators.moments import add_exactly, error_of_square"

Finished = tuple[NDArray[Any], NDArray[np.bool_] | None]  # data, and nulls where there can be some

_INT64, _FLOAT64, _BOOL = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_)


@dataclass(frozen=True)
class Slot:
    """One array of an accumulator, and what a new group has there, as generated code writes it."""

    dtype: np.dtype[Any]
    start: str
    is_text: bool = False  # codes of strings, which mean nothing in another process


@dataclass(frozen=True)
class Place:
    """The kernel's names for an event's place in the order of events."""

    time: str
    order: str
    sub: str


class Accumulator(ABC):
    """What one aggregate keeps per group. A group that took nothing in must not change another by
    ``merge``.
    """

    slots: tuple[Slot, ...]

    @abstractmethod
    def update(self, at: Sequence[str], value: str, place: Place) -> list[str]:
        """Statements that take one event in; ``at`` are the slots of its group (``acc0[e]``)."""

    @abstractmethod
    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        """Statements that put the group with the slots ``other`` into the one with the slots ``at``."""

    @abstractmethod
    def finish(self, slots: Columns) -> Finished:
        """The results of many groups; ``slots`` are their slots."""

    def unset(self, slots: Columns) -> NDArray[np.bool_] | None:
        """Which groups took no value in; None if all did."""
        return None


def accumulator(kind: AggregateKind, dtype: DataType, nullable: bool) -> Accumulator:
    """The accumulator of an aggregate over values of ``dtype``."""
    match kind:
        case AggregateKind.COUNT:
            return _Count()
        case AggregateKind.SUM:
            made: Accumulator = _FloatSum() if dtype.is_float else _IntSum()
        case AggregateKind.MIN | AggregateKind.MAX:
            made = _Extreme(kind is AggregateKind.MIN, dtype)
        case AggregateKind.AVG:
            return _FloatAverage() if dtype.is_float else _IntAverage()
        case AggregateKind.VARIANCE:
            return _Variance()
        case AggregateKind.FIRST | AggregateKind.LAST:
            made = _Outermost(kind is AggregateKind.FIRST, dtype)
        case _:
            raise TypeError(f"{kind} keeps its values, it has no accumulator")
    return _OrNull(made) if nullable else made


class Accumulators:
    """The accumulators of several aggregates over the same groups: their arrays, as one tuple."""

    def __init__(self, parts: Sequence[Accumulator], capacity: int) -> None:
        self.parts = tuple(parts)
        self.slots: tuple[Slot, ...] = tuple(slot for part in self.parts for slot in part.slots)
        self.arrays: Columns = tuple(np.zeros(capacity, slot.dtype) for slot in self.slots)
        if not self.slots:  # a kernel's tuple needs at least one array
            self.arrays = (np.zeros(1, np.int64),)

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(array.dtype for array in self.arrays)

    def resize(self, capacity: int) -> None:
        """Makes room for groups 0 to ``capacity``; those that remain keep their values."""
        if not self.slots or len(self.arrays[0]) == capacity:
            return
        kept = min(len(self.arrays[0]), capacity)
        resized = tuple(np.zeros(capacity, slot.dtype) for slot in self.slots)
        for new, old in zip(resized, self.arrays, strict=True):
            new[:kept] = old[:kept]
        self.arrays = resized

    def unpack(self, array: str, prefix: str) -> list[str]:
        """Statements before a kernel's loop: the arrays into locals."""
        return [f"{prefix}{index} = {array}[{index}]" for index in range(len(self.slots))]

    def start(self, prefix: str, group: str) -> list[str]:
        """Statements that make a group new."""
        return [f"{prefix}{index}[{group}] = {slot.start}" for index, slot in enumerate(self.slots)]

    def update(self, prefix: str, group: str, values: Sequence[Code | None], place: Place) -> list[str]:
        """Statements that take one event in; ``values`` has one per aggregate (None: the event itself)."""
        lines: list[str] = []
        for part, at, value in zip(self.parts, self._places(prefix, group), values, strict=True):
            taking = part.update(at, "" if value is None else value.value, place)
            if value is None or value.null is None:
                lines += taking
            else:
                lines += [f"if not {value.null}:", *(f"    {line}" for line in taking)]
        return lines

    def merge(self, prefix: str, group: str, other_prefix: str, other: str) -> list[str]:
        """Statements that put group ``other`` into ``group``."""
        both = zip(self.parts, self._places(prefix, group), self._places(other_prefix, other), strict=True)
        return [line for part, at, from_ in both for line in part.merge(at, from_)]

    def finish(self, groups: NDArray[Any]) -> list[Finished]:
        """The results of these groups, one pair of arrays per aggregate."""
        results, place = [], 0
        for part in self.parts:
            slots = self.arrays[place : place + len(part.slots)]
            results.append(part.finish(tuple(slot[groups] for slot in slots)))
            place += len(part.slots)
        return results

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def _places(self, prefix: str, group: str) -> list[list[str]]:
        places, index = [], 0
        for part in self.parts:
            places.append([f"{prefix}{index + offset}[{group}]" for offset in range(len(part.slots))])
            index += len(part.slots)
        return places


# -- the kinds -----------------------------------------------------------------------------------------------


class _OrNull(Accumulator):
    """Null until a value came."""

    def __init__(self, inner: Accumulator) -> None:
        self._inner = inner
        self.slots = (*inner.slots, Slot(_BOOL, "False"))

    def update(self, at: Sequence[str], value: str, place: Place) -> list[str]:
        return [*self._inner.update(at[:-1], value, place), f"{at[-1]} = True"]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [*self._inner.merge(at[:-1], other[:-1]), f"{at[-1]} = {at[-1]} or {other[-1]}"]

    def finish(self, slots: Columns) -> Finished:
        return self._inner.finish(slots[:-1])[0], ~slots[-1]

    def unset(self, slots: Columns) -> NDArray[np.bool_] | None:
        return ~slots[-1]


class _Count(Accumulator):
    slots = (Slot(_INT64, "0"),)

    def update(self, at: Sequence[str], value: str, place: Place) -> list[str]:
        return [f"{at[0]} += 1"]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [f"{at[0]} += {other[0]}"]

    def finish(self, slots: Columns) -> Finished:
        return slots[0], None


class _IntSum(Accumulator):
    slots = (Slot(_INT64, "0"),)

    def update(self, at: Sequence[str], value: str, place: Place) -> list[str]:
        return [f"{at[0]} += int64({value})"]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [f"{at[0]} += {other[0]}"]

    def finish(self, slots: Columns) -> Finished:
        return slots[0], None


class _FloatSum(Accumulator):
    """Neumaier's sum: what is lost in each addition is summed apart."""

    slots = (Slot(_FLOAT64, "0.0"), Slot(_FLOAT64, "0.0"))

    def update(self, at: Sequence[str], value: str, place: Place) -> list[str]:
        return _add(at[0], at[1], f"float64({value})")

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [*_add(at[0], at[1], other[0]), f"{at[1]} += {other[1]}"]

    def finish(self, slots: Columns) -> Finished:
        total, lost = slots
        # inf and NaN are what IEEE makes of them; only the loss is then meaningless
        return np.where(np.isfinite(total), total + np.where(np.isfinite(lost), lost, 0.0), total), None


class _FloatAverage(Accumulator):
    slots = (*_FloatSum.slots, Slot(_INT64, "0"))

    def __init__(self) -> None:
        self._sum = _FloatSum()

    def update(self, at: Sequence[str], value: str, place: Place) -> list[str]:
        return [*self._sum.update(at, value, place), f"{at[2]} += 1"]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [*self._sum.merge(at, other), f"{at[2]} += {other[2]}"]

    def finish(self, slots: Columns) -> Finished:
        return self._sum.finish(slots[:2])[0] / np.maximum(slots[2], 1), slots[2] == 0


class _IntAverage(Accumulator):
    """Sums of the upper and the lower 32 bits, which neither round nor overflow."""

    slots = (Slot(_INT64, "0"), Slot(_INT64, "0"), Slot(_INT64, "0"))

    def update(self, at: Sequence[str], value: str, place: Place) -> list[str]:
        return [
            f"{at[0]} += int64({value}) >> 32",
            f"{at[1]} += int64({value}) & 0xFFFFFFFF",
            f"{at[2]} += 1",
        ]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [f"{mine} += {theirs}" for mine, theirs in zip(at, other, strict=True)]

    def finish(self, slots: Columns) -> Finished:
        upper, lower, count = slots
        carried = upper + (lower >> 32)  # now 0 <= rest < 2**32: nothing cancels
        rest = lower & 0xFFFFFFFF
        return (carried * 4294967296.0 + rest) / np.maximum(count, 1), count == 0


class _Variance(Accumulator):
    """Sums of values and of squares to twice the precision of a float64, so that they may cancel."""

    slots = (*_FloatSum.slots, *_FloatSum.slots, Slot(_INT64, "0"))

    def update(self, at: Sequence[str], value: str, place: Place) -> list[str]:
        square = f"float64({value}) * float64({value})"
        return [
            *_add(at[0], at[1], f"float64({value})"),
            *_add(at[2], at[3], square),
            f"{at[3]} += error_of_square(float64({value}))",
            f"{at[4]} += 1",
        ]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [
            *_add(at[0], at[1], other[0]),
            f"{at[1]} += {other[1]}",
            *_add(at[2], at[3], other[2]),
            f"{at[3]} += {other[3]}",
            f"{at[4]} += {other[4]}",
        ]

    def finish(self, slots: Columns) -> Finished:
        return variance_of(*slots), slots[4] < 2


class _Extreme(Accumulator):
    """The least or the greatest; NaN is above every number."""

    def __init__(self, least: bool, dtype: DataType) -> None:
        self._least, self._float = least, dtype.is_float
        if dtype.is_float:
            start = "np.nan" if least else "-np.inf"
        else:
            limits = np.iinfo(dtype.numpy)
            start = f"{SCALAR[dtype]}({limits.max if least else limits.min})"
        self.slots = (Slot(dtype.numpy, start),)

    def update(self, at: Sequence[str], value: str, place: Place) -> list[str]:
        mine = at[0]
        if self._least:
            better = f"{value} < {mine}" + (f" or {mine} != {mine}" if self._float else "")
        else:
            better = f"{value} > {mine}" + (f" or {value} != {value}" if self._float else "")
        return [f"if {better}:", f"    {mine} = {value}"]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return self.update(at, other[0], Place("", "", ""))

    def finish(self, slots: Columns) -> Finished:
        return slots[0], None


class _Outermost(Accumulator):
    """The value of the first or the last event by (time, order, sub)."""

    def __init__(self, first: bool, dtype: DataType) -> None:
        self._before = "<" if first else ">"
        limits = np.iinfo(np.int64)
        start = f"int64({limits.max})" if first else f"int64({limits.min})"
        self.slots = (Slot(dtype.numpy, "0", dtype is DataType.STRING), *(Slot(_INT64, start),) * 3)

    def update(self, at: Sequence[str], value: str, place: Place) -> list[str]:
        kept, time, order, sub = at
        before = self._before
        inner = f"{place.order} == {order} and {place.sub} {before} {sub}"
        outer = f"{place.time} == {time} and ({place.order} {before} {order} or ({inner}))"
        return [
            f"if {place.time} {before} {time} or ({outer}):",
            f"    {kept} = {value}",
            f"    {time} = {place.time}",
            f"    {order} = {place.order}",
            f"    {sub} = {place.sub}",
        ]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return self.update(at, other[0], Place(*other[1:]))

    def finish(self, slots: Columns) -> Finished:
        return slots[0], None


def _add(total: str, lost: str, value: str) -> list[str]:
    return [f"{total}, {lost} = add_exactly({total}, {lost}, {value})"]
