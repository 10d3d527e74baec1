"""The first values, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates.aggregate import (
    Aggregate,
    AggregateFunction,
    Condition,
    aggregate,
    declared,
)
from penstock.query.errors import QueryError
from penstock.query.expr import Expr
from penstock.query.inference import Typed
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class CollectList(AggregateFunction):
    """The first ``limit`` values by (event time, source, offset), as the text of a JSON list."""

    name = "collect_list"
    in_order = True
    of_none = None

    limit: int

    def __post_init__(self) -> None:
        if type(self.limit) is not int or self.limit < 1:
            raise QueryError(
                "collect_list needs a limit of at least 1",
                detail=f"got {self.limit!r}",
                hint="write collect_list('x', 100)",
            )

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        return Typed(DataType.STRING, types[0].nullable)


def collect_list(value: str | Expr, limit: int, *, where: Condition = None) -> Aggregate:
    """The first ``limit`` values by (event time, source, offset), as the text of a JSON list; timestamps in
    microseconds."""
    return aggregate(CollectList(limit), value, where=where)
