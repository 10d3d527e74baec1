"""The mean of values."""

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
class Avg(AggregateFunction):
    """The mean as float64."""

    name = "avg"
    in_order = False
    of_none = None

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        needs_number(self.name, operands[0], types[0])
        return Typed(DataType.FLOAT64, types[0].nullable)


def avg(value: str | Expr, *, where: Condition = None) -> Aggregate:
    """The mean as float64."""
    return aggregate(Avg(), value, where=where)
