"""The earliest value."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates.aggregate import Aggregate, AggregateFunction, Condition, aggregate, declared
from penstock.query.expr import Expr
from penstock.query.inference import Typed


@declared
@dataclass(frozen=True)
class First(AggregateFunction):
    """The value of the earliest event that has one, by (event time, source, offset)."""

    name = "first"
    in_order = True
    of_none = None

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        return types[0]


def first(value: str | Expr, *, where: Condition = None) -> Aggregate:
    """The value of the earliest event that has one, by (event time, source, offset)."""
    return aggregate(First(), value, where=where)
