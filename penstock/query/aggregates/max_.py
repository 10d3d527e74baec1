"""The greatest value."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates.aggregate import (
    Aggregate,
    AggregateFunction,
    Condition,
    aggregate,
    declared,
    needs_number,
)
from penstock.query.expr import Expr
from penstock.query.inference import Typed


@declared
@dataclass(frozen=True)
class Max(AggregateFunction):
    """The largest value; NaN is larger than every number."""

    name = "max"
    in_order = False
    of_none = None

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        needs_number(self.name, operands[0], types[0], or_time=True)
        return types[0]


def max_(value: str | Expr, *, where: Condition = None) -> Aggregate:
    """The largest value; NaN is larger than every number."""
    return aggregate(Max(), value, where=where)
