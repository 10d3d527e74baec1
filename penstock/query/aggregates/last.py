"""The latest value."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates.aggregate import Aggregate, AggregateFunction, Condition, aggregate, declared
from penstock.query.expr import Expr
from penstock.query.inference import Typed


@declared
@dataclass(frozen=True)
class Last(AggregateFunction):
    """The value of the latest event that has one, by (event time, source, offset)."""

    name = "last"
    in_order = True
    of_none = None

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        return types[0]


def last(value: str | Expr, *, where: Condition = None) -> Aggregate:
    """The value of the latest event that has one, by (event time, source, offset)."""
    return aggregate(Last(), value, where=where)
