"""The number of events."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates.aggregate import Aggregate, AggregateFunction, Condition, aggregate, declared
from penstock.query.errors import QueryError
from penstock.query.expr import Column, Expr
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
        for operand, typed in zip(operands, types, strict=True):
            if typed.dtype is DataType.BOOL and not isinstance(operand, Column):
                raise QueryError(
                    "count of a condition counts where it is true or false",
                    detail=f"got {operand!r}",
                    hint=f"write count(where={operand!r}) for how often it is true",
                )
        return Typed(DataType.INT64)


def count(value: str | Expr | None = None, *, where: Condition = None) -> Aggregate:
    """How many events; of a column, how many that are not null."""
    return aggregate(Count(), *(() if value is None else (value,)), where=where)
