"""What an aggregate keeps per group: an accumulator of fixed size, or all values; registered by its class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.memory.layout import Columns
from penstock.memory.strings import StringPool
from penstock.query.aggregates import AGGREGATES, Aggregate, AggregateFunction
from penstock.query.inference import resolved
from penstock.query.types import DataType, Schema
from penstock.query.word import check_declared

Finished = tuple[NDArray[Any], NDArray[np.bool_] | None]  # data, and nulls where there can be some

INT64, FLOAT64, BOOL = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_)


class Native(Enum):
    """What an engine that is not ours makes of the values of a batch to fill a slot as our kernel would."""

    COUNT = "how many"
    SUM = "their sum, wrapped"
    SUM_UPPER = "the sum of their upper 32 bits"
    SUM_LOWER = "the sum of their lower 32 bits"
    LEAST = "the least"
    GREATEST = "the greatest"
    ANY = "whether there are any"


@dataclass(frozen=True)
class Slot:
    """One array of an accumulator, and what a new group has there, as generated code writes it.

    Without a ``native`` form only our own kernel can fill the slot.
    """

    dtype: np.dtype[Any]
    start: str
    native: Native | None = None
    is_text: bool = False  # codes of strings, which mean nothing in another process


@dataclass(frozen=True)
class EventPlace:
    """The kernel's names for an event's place in the order of events."""

    time: str
    order: str
    sub: str


class Accumulator(ABC):
    """What one aggregate keeps per group. A group that took nothing in must not change another by
    ``merge``.
    """

    slots: tuple[Slot, ...]
    #: Whether ``finish`` knows by itself which groups took no value in.
    knows_null: ClassVar[bool] = False

    @abstractmethod
    def update(self, at: Sequence[str], values: Sequence[str], place: EventPlace) -> list[str]:
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


class OrNull(Accumulator):
    """Null until a value came."""

    knows_null = True

    def __init__(self, inner: Accumulator) -> None:
        self._inner = inner
        self.slots = (*inner.slots, Slot(BOOL, "False", Native.ANY))

    def update(self, at: Sequence[str], values: Sequence[str], place: EventPlace) -> list[str]:
        return [*self._inner.update(at[:-1], values, place), f"{at[-1]} = True"]

    def merge(self, at: Sequence[str], other: Sequence[str]) -> list[str]:
        return [*self._inner.merge(at[:-1], other[:-1]), f"{at[-1]} = {at[-1]} or {other[-1]}"]

    def finish(self, slots: Columns) -> Finished:
        return self._inner.finish(slots[:-1])[0], ~slots[-1]

    def unset(self, slots: Columns) -> NDArray[np.bool_] | None:
        return ~slots[-1]


#: Is given the function, the types of its operands and the run's strings: an ``Accumulator``, or a
#: ``Collector`` for what keeps every value.
Keeper = Callable[[Any, tuple[DataType, ...], StringPool], Any]

_KEEPERS: dict[type[AggregateFunction], Keeper] = {}
_Any = TypeVar("_Any", bound=Keeper)


def keeps(*kinds: type[AggregateFunction]) -> Callable[[_Any], _Any]:
    """Registers what these aggregates keep."""

    def register(keeper: _Any) -> _Any:
        _KEEPERS.update((kind, keeper) for kind in kinds)
        return keeper

    return register


def kept_by(aggregate: Aggregate, schema: Schema, strings: StringPool) -> Any:
    """What the aggregate keeps over events of ``schema``: an ``Accumulator`` or a ``Collector``."""
    types = tuple(resolved(operand, schema) for operand in aggregate.operands)
    keeper = _KEEPERS[type(aggregate.function)]
    kept = keeper(aggregate.function, tuple(typed.dtype for typed in types), strings)
    passes_over = aggregate.where is not None or any(typed.nullable for typed in types)
    return OrNull(kept) if isinstance(kept, Accumulator) and passes_over and not kept.knows_null else kept


def check_all() -> None:
    """Raises where an aggregate that is declared keeps nothing."""
    without = [name for name, kind in AGGREGATES.items() if kind not in _KEEPERS]
    if without:
        raise TypeError(f"nothing keeps {', '.join(without)}: register an accumulator with @keeps")
    check_declared(_KEEPERS, "an accumulator keeps")
