"""What an aggregate must say of itself before it exists, and an aggregate over some expressions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.query.errors import QueryError
from penstock.query.expr import Expr, Operand, as_expr, col
from penstock.query.inference import Typed, resolved
from penstock.query.types import DataType, Schema
from penstock.query.word import Word, declared

__all__ = [
    "AGGREGATES",
    "Aggregate",
    "AggregateFunction",
    "Condition",
    "aggregate",
    "declared",
    "needs_number",
]

#: Which events an aggregate takes: those for which it is true; None: all.
Condition = Expr | bool | None

#: All that are declared, by name.
AGGREGATES: dict[str, type[AggregateFunction]] = {}


class AggregateFunction(Word):
    """One aggregate; an instance is the aggregate with its constants. All pass over nulls, as SQL does.

    What operators keep for it is registered there, by its class; they fail at import for an aggregate that
    they do not know.
    """

    word = "aggregate"
    words = AGGREGATES
    answers = ("name", "in_order", "of_none")

    #: Whether the result depends on the order of events.
    in_order: ClassVar[bool]
    #: What it is of no values at all: 0 of counts, null (None) of others.
    of_none: ClassVar[int | None]

    @abstractmethod
    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        """Its type over events that are all taken; raises ``QueryError`` where the operands do not fit."""


@dataclass(frozen=True, eq=False)
class Aggregate:
    """An aggregate of expressions (``count()`` has none) over the events for which ``where`` is true."""

    function: AggregateFunction
    operands: tuple[Expr, ...] = ()
    where: Expr | None = None

    def result_type(self, schema: Schema) -> Typed:
        """The type of the result over events of ``schema``; raises where the function does not fit."""
        types = tuple(resolved(operand, schema) for operand in self.operands)
        typed = self.function.result(self.operands, types)
        if self.where is None:
            return typed
        condition = resolved(self.where, schema)
        if condition.dtype is not DataType.BOOL:
            raise QueryError(
                f"where of {self.function.name} needs a condition",
                detail=f"got {self.where!r} of type {condition.dtype}",
                hint="write e.g. where=col('speed') > 30",
            )
        return Typed(typed.dtype, typed.nullable or self.function.of_none is None)

    def columns(self) -> frozenset[str]:
        """The names of all columns it reads."""
        return frozenset[str]().union(*(expr.columns() for expr in self.exprs()))

    def exprs(self) -> tuple[Expr, ...]:
        """What it computes of an event."""
        return self.operands if self.where is None else (*self.operands, self.where)

    def key(self) -> tuple[Any, ...]:
        """What it is, as a value that can be compared and hashed."""
        constants = self.function.said()[2:]
        operands = tuple(operand.key() for operand in self.operands)
        where = () if self.where is None else (("where", self.where.key()),)
        return (self.function.name, *(operands or (None,)), *(constants or (None,)), *where)

    def said(self) -> tuple[Any, ...]:
        """What it means to a checkpoint."""
        where = None if self.where is None else self.where.key()
        return (*self.function.said(), tuple(operand.key() for operand in self.operands), where)

    def text(self) -> str:
        """The aggregate as people read it."""
        inside = [*map(repr, self.operands), *self.function.constants()]
        inside += [] if self.where is None else [f"where={self.where!r}"]
        return f"{self.function.name}({', '.join(inside)})"

    __repr__ = text


def aggregate(function: AggregateFunction, *operands: Operand, where: Condition = None) -> Aggregate:
    """The function over its operands: names of columns, or expressions."""
    exprs = tuple(col(one) if isinstance(one, str) else as_expr(one) for one in operands)
    return Aggregate(function, exprs, None if where is None else as_expr(where))


def needs_number(function: str, operand: Expr, typed: Typed, *, or_time: bool = False) -> None:
    """Raises unless it is over a number, or a timestamp where that makes sense."""
    if not typed.dtype.is_numeric and not (or_time and typed.dtype is DataType.TIMESTAMP):
        raise QueryError(
            f"{function} needs a number{' or a timestamp' if or_time else ''}",
            detail=f"got {operand!r} of type {typed.dtype}",
            hint="count(), first(), last() and count_distinct() take any type",
        )
