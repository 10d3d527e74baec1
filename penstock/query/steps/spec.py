"""What a step must say of itself before it exists. Whoever plans, cuts, explains or keeps a graph asks it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from penstock.query.expr import Expr
from penstock.query.failures import OnError, failed_schema
from penstock.query.own_columns import LATE, ORDER, SUB, SYSTEM_TYPES, TIME
from penstock.query.types import Schema
from penstock.query.windows import Window
from penstock.query.word import Word
from penstock.query.word import complete as complete
from penstock.query.word import declared as declared

Means = tuple[Any, ...]
Names = AbstractSet[str]
Version = int | str | None
NamedExprs = tuple[tuple[str, Expr], ...]
Pairs = tuple[tuple[str, str], ...]

#: All that are declared, by name.
STEPS: dict[str, type[Spec]] = {}

#: What a step reads whose result depends on event time, and one that depends on the order of events.
TIMED = frozenset((TIME, LATE))
PLACE = frozenset((ORDER, SUB))


def system(wanted: Names) -> set[str]:
    """Those of Penstock's own columns that are wanted."""
    return {name for name in wanted if name in SYSTEM_TYPES}


class Order(Enum):
    """By what the rows that a step gives are told apart, and put in order among those of one time."""

    KEPT = "kept"  # as the events that they are made of
    MULTIPLIED = "multiplied"  # several can differ in nothing but ``$sub``
    HASHED = "hashed"  # by ``$order`` alone, which the step computes


class Spec(Word):
    """One kind of step, with what the user asked of it. The operator that runs it is registered there, by
    the step's class; the operators fail at import for a step that they do not know.
    """

    word = "step"
    words = STEPS
    answers = ("name", "inputs", "timed", "order", "names_columns")

    #: How many inputs it has; None: any number, at least one.
    inputs: ClassVar[int | None]
    #: Whether its result depends on event time: late events are left out, and are on an output of their own.
    timed: ClassVar[bool]
    order: ClassVar[Order]
    #: Whether it names all columns that it reads, or takes whole events: for those a projection matters.
    names_columns: ClassVar[bool]
    #: Whether its function is called for timers too, which are no events.
    has_timers: ClassVar[bool] = False

    @abstractmethod
    def routed_by(self, index: int) -> tuple[str, ...] | None:
        """The columns that events of input ``index`` are brought together by, for the state by key; none: all
        events belong together. None: it takes events wherever they are."""

    @abstractmethod
    def merges(self) -> bool:
        """Whether parts of its input can be aggregated apart and the partial states merged: then those
        travel, and not the events."""

    @abstractmethod
    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        """The columns of input ``index``, which has ``schema``, that it needs to make the columns ``wanted``;
        both with Penstock's own."""

    @abstractmethod
    def means(self) -> Means:
        """All by which its state and its rows are what they are, as plain values, the same in every run: of a
        function its name. Not to be reworded; what changes no result is left out."""

    @abstractmethod
    def details(self) -> str:
        """What people read behind its name."""

    def text(self) -> str:
        return f"{self.name} {self.details()}".rstrip()

    def said(self) -> Means:
        return (self.name, self.version, *self.means())

    def functions(self) -> tuple[Any, ...]:
        """The user's functions in it."""
        return ()

    def state_columns(self) -> Names | None:
        """The columns that its state can have, whatever other queries want of its input; None: all that it
        reads."""
        return None

    @property
    def is_routed(self) -> bool:
        """Whether it keeps state by key, so that events must be brought to it."""
        return self.routed_by(0) is not None

    @property
    def sets_aside(self) -> bool:
        """Whether it has a failed output."""
        return getattr(self, "on_error", None) is OnError.SET_ASIDE

    def failed_columns(self, events: Schema) -> Schema:
        """The columns of its failed output over these events."""
        return failed_schema(events, self.routed_by(0) if self.has_timers else None)


# -- families: what the steps of one answer alike ----------------------------------------------------------


class Stateless(Spec):
    """Events are taken as they come, late ones too, and nothing is kept."""

    inputs: ClassVar[int | None] = 1
    timed = False

    def routed_by(self, index: int) -> tuple[str, ...] | None:
        return None

    def merges(self) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class Keyed(Spec):
    """State by key; events are taken in their order."""

    inputs = 1
    timed = True

    keys: tuple[str, ...]

    def routed_by(self, index: int) -> tuple[str, ...] | None:
        return self.keys

    def merges(self) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class Windowed(Keyed):
    """Rows per key and window, once it has closed."""

    order = Order.HASHED
    names_columns = True

    window: Window

    def merges(self) -> bool:
        return self.window.mergeable


@dataclass(frozen=True, eq=False)
class Joining(Spec):
    """Two inputs, brought together by columns that are equal."""

    inputs = 2
    timed = True

    on: Pairs  # (column of the left input, column of the right one)

    def routed_by(self, index: int) -> tuple[str, ...] | None:
        return tuple(pair[index] for pair in self.on)

    def merges(self) -> bool:
        return False


class PartialStep(Spec):
    """One of the steps that a runtime makes of a user's step; it takes whole events."""

    inputs: ClassVar[int | None] = None
    timed = False
    order = Order.KEPT
    names_columns = False

    def routed_by(self, index: int) -> tuple[str, ...] | None:
        return ()

    def merges(self) -> bool:
        return False

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return set(schema.names)

    def details(self) -> str:
        return ""

    def means(self) -> Means:
        return ()
