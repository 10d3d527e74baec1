"""The sum of values."""

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
class Sum(AggregateFunction):
    """The sum: int64 (wraps) of integers, float64 (compensated) of floats."""

    name = "sum"
    in_order = False
    of_none = None

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        needs_number(self.name, operands[0], types[0])
        return Typed(DataType.INT64 if types[0].dtype.is_integer else DataType.FLOAT64, types[0].nullable)


def sum_(value: str | Expr, *, where: Condition = None) -> Aggregate:
    """The sum: int64 (wraps) of integers, float64 (compensated) of floats."""
    return aggregate(Sum(), value, where=where)
