"""A value of the event in which another is the smallest."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates.aggregate import Aggregate, Condition, aggregate, declared
from penstock.query.aggregates.arg_extreme import ArgExtreme
from penstock.query.expr import Expr


@declared
@dataclass(frozen=True)
class ArgMin(ArgExtreme):
    """The value where ``by`` is the smallest, of the earliest such event; NaN is larger than every number."""

    name = "arg_min"


def arg_min(value: str | Expr, by: str | Expr, *, where: Condition = None) -> Aggregate:
    """The value where ``by`` is the smallest, of the earliest such event; NaN is larger than every number."""
    return aggregate(ArgMin(), value, by, where=where)
