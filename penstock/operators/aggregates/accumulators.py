"""The accumulators of several aggregates over the same groups: their arrays, and the code that works on them.

Each has a few arrays indexed by group. Generated kernels take events in (``update``) and put one group into
another (``merge``); when a group is complete, numpy finishes many at once (``finish``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.builder import Code
from penstock.memory.layout import Columns
from penstock.operators.aggregates.accumulator import Accumulator, EventPlace, Finished, Slot

#: Functions that the generated text calls: a kernel's source needs this import.
IMPORTS = "from penstock.operators.aggregates.exact_sums import add_exactly, error_of_square"


@dataclass(frozen=True)
class Taken:
    """What an aggregate takes of an event: the values of its operands. It passes over nulls, and over events
    for which ``where`` is not true.
    """

    values: tuple[Code, ...]
    where: str | None

    def guarded(self, taking: list[str]) -> list[str]:
        """The statements that take it, under their condition."""
        conditions = [f"not {code.null}" for code in self.values if code.null is not None]
        conditions += [] if self.where is None else [f"({self.where})"]
        if not conditions:
            return taking
        return [f"if {' and '.join(conditions)}:", *(f"    {line}" for line in taking)]


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

    def update(self, prefix: str, group: str, taken: Sequence[Taken], place: EventPlace) -> list[str]:
        """Statements that take one event in; ``taken`` has what each aggregate takes."""
        lines: list[str] = []
        for part, at, one in zip(self.parts, self._places(prefix, group), taken, strict=True):
            lines += one.guarded(part.update(at, [code.value for code in one.values], place))
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
