"""Values of events that a pattern has bound: what conditions on earlier events and outputs are made of."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.query.errors import QueryError
from penstock.query.expr import Expr, col

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: What can be asked of the events bound under one name.
FUNCTIONS = ("last", "first", "count", "sum", "min", "max", "avg")


@dataclass(frozen=True, eq=False, repr=False)
class Bound(Expr):
    """A function of the events bound under ``event``; without a name, of all events bound so far."""

    event: str | None
    column: str | None  # only a count may have none
    function: str

    def columns(self) -> frozenset[str]:
        return frozenset(() if self.column is None else (self.column,))

    @property
    def field_name(self) -> str:
        """The name of the column that stands for it where expressions are typed and compiled."""
        return f"@{self.function} {self.event or ''} {self.column or ''}"

    def __repr__(self) -> str:
        if self.event is None:
            return f"previous({self.column})"
        if self.function == "last":
            return f"{self.event}.{self.column}"
        return f"{self.function}({self.event}{'' if self.column is None else '.' + self.column})"


class Events:
    """What is bound under one name, as an expression can read it. Made by ``event`` and ``bound``."""

    name: str

    def __getitem__(self, column: str) -> Expr:
        """The column in the event; in a repetition, in the last one so far. Null if there is none."""
        return self._of(column, "last")

    def last(self, column: str) -> Expr:
        """The column in the last event of a repetition."""
        return self._of(column, "last")

    def first(self, column: str) -> Expr:
        """The column in the first event of a repetition."""
        return self._of(column, "first")

    def count(self) -> Expr:
        """How many events there are."""
        return Bound(self.name, None, "count")

    def sum(self, column: str) -> Expr:
        """The sum over the events of a repetition; null of none."""
        return self._of(column, "sum")

    def min(self, column: str) -> Expr:
        """The smallest value in a repetition; null of none."""
        return self._of(column, "min")

    def max(self, column: str) -> Expr:
        """The largest value in a repetition; null of none."""
        return self._of(column, "max")

    def avg(self, column: str) -> Expr:
        """The mean over a repetition as float64; null of none."""
        return self._of(column, "avg")

    def _of(self, column: str, function: str) -> Expr:
        return Bound(self.name, col(column).name, function)


@dataclass(frozen=True)
class NamedEvents(Events):
    """Events that are known by their name only."""

    name: str


def bound(name: Any) -> Events:
    """The events bound under a name so far, also in the condition of that very name.

    >>> from penstock.query.patterns.patterns import event
    >>> rising = event("rising", (bound("rising").count() == 0) | (col("x") > bound("rising")["x"]))
    >>> rising.condition
    ((count(rising) == 0) or (x > rising.x))
    """
    if not isinstance(name, str) or not name:
        raise QueryError("an event of a pattern has a name", detail=f"got {name!r}", hint="write bound('a')")
    return NamedEvents(name)


def previous(column: str) -> Expr:
    """The column in the event that was bound just before, under whatever name; null at the first.

    >>> previous("price")
    previous(price)
    """
    return Bound(None, col(column).name, "last")


def bound_in(expr: Expr) -> Iterator[Bound]:
    """All references to bound events in an expression."""
    if isinstance(expr, Bound):
        yield expr
    for child in expr.children():
        yield from bound_in(child)


Node = TypeVar("Node")


def rewritten(value: Node, change: Callable[[Bound], Expr]) -> Node:
    """An expression with every reference replaced; all else stays as it is."""
    if isinstance(value, Bound):
        return change(value)  # type: ignore[return-value]
    if isinstance(value, Expr):
        parts: dict[str, Any] = {f.name: getattr(value, f.name) for f in fields(value)}  # type: ignore[arg-type]
        changed = {name: rewritten(part, change) for name, part in parts.items()}
        if all(changed[name] is part for name, part in parts.items()):
            return value
        return replace(value, **changed)  # type: ignore[type-var]
    if isinstance(value, tuple):
        made = tuple(rewritten(item, change) for item in value)
        return value if all(a is b for a, b in zip(made, value, strict=True)) else made  # type: ignore[return-value]
    return value
