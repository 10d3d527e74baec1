"""A value that a share of all values does not exceed."""

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
from penstock.query.errors import QueryError
from penstock.query.expr import Expr
from penstock.query.inference import Typed
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Quantile(AggregateFunction):
    """The q-quantile, exactly, with linear interpolation. Keeps the window's values until it closes."""

    name = "quantile"
    in_order = False
    of_none = None

    q: float

    def __post_init__(self) -> None:
        if not _is_share(self.q):
            raise QueryError(
                "a quantile lies between 0 and 1", detail=f"got {self.q!r}", hint="write quantile('x', 0.99)"
            )
        object.__setattr__(self, "q", float(self.q))

    def result(self, operands: tuple[Expr, ...], types: tuple[Typed, ...]) -> Typed:
        needs_number(self.name, operands[0], types[0])
        return Typed(DataType.FLOAT64, types[0].nullable)


def quantile(value: str | Expr, q: float, *, where: Condition = None) -> Aggregate:
    """The q-quantile, exactly, with linear interpolation. Keeps the window's values until it closes."""
    return aggregate(Quantile(q), value, where=where)


def median(value: str | Expr, *, where: Condition = None) -> Aggregate:
    """``quantile(value, 0.5)``."""
    return quantile(value, 0.5, where=where)


def _is_share(q: object) -> bool:
    return isinstance(q, int | float) and not isinstance(q, bool) and 0.0 <= q <= 1.0
