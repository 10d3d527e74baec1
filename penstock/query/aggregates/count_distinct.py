"""How many different values there are."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates.aggregate import Aggregate, AggregateFunction, Condition, aggregate, declared
from penstock.query.expr import Expr
from penstock.query.inference import Typed
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class CountDistinct(AggregateFunction):
    """How many different values, exactly. Keeps the window's values until it closes."""

    name = "count_distinct"
    in_order = False
    of_none = 0

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        return Typed(DataType.INT64)


def count_distinct(value: str | Expr, *, where: Condition = None) -> Aggregate:
    """How many different values, exactly. Keeps the window's values until it closes."""
    return aggregate(CountDistinct(), value, where=where)
