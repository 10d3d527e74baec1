"""The least value."""

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
class Min(AggregateFunction):
    """The smallest value; NaN only where there is nothing else."""

    name = "min"
    in_order = False
    of_none = None

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        needs_number(self.name, operands[0], types[0], or_time=True)
        return types[0]


def min_(value: str | Expr, *, where: Condition = None) -> Aggregate:
    """The smallest value; NaN only where there is nothing else."""
    return aggregate(Min(), value, where=where)
