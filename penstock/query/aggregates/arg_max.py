"""A value of the event in which another is the largest."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates.aggregate import Aggregate, Condition, aggregate, declared
from penstock.query.aggregates.arg_extreme import ArgExtreme
from penstock.query.expr import Expr


@declared
@dataclass(frozen=True)
class ArgMax(ArgExtreme):
    """The value where ``by`` is the largest, of the earliest such event; NaN is larger than every number."""

    name = "arg_max"


def arg_max(value: str | Expr, by: str | Expr, *, where: Condition = None) -> Aggregate:
    """The value where ``by`` is the largest, of the earliest such event; NaN is larger than every number."""
    return aggregate(ArgMax(), value, by, where=where)
