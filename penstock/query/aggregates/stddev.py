"""How far values usually lie from their mean."""

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
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Stddev(AggregateFunction):
    """The sample standard deviation as float64; null of fewer than two values."""

    name = "stddev"
    in_order = False
    of_none = None

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        needs_number(self.name, operands[0], types[0])
        return Typed(DataType.FLOAT64, True)


def stddev(value: str | Expr, *, where: Condition = None) -> Aggregate:
    """The sample standard deviation as float64; null of fewer than two values."""
    return aggregate(Stddev(), value, where=where)
