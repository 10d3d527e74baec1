"""The number of events."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates.aggregate import Aggregate, AggregateFunction, aggregate, declared
from penstock.query.expr import Expr
from penstock.query.inference import Typed
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Count(AggregateFunction):
    """How many events; of a column, how many that are not null."""

    name = "count"
    in_order = False
    of_none = 0

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        return Typed(DataType.INT64)


def count(value: str | Expr | None = None) -> Aggregate:
    """How many events; of a column, how many that are not null."""
    return aggregate(Count()) if value is None else aggregate(Count(), value)
