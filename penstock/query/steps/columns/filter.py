"""The events for which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.expr import Expr
from penstock.query.steps.spec import Means, Names, Order, Stateless, declared
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class FilterSpec(Stateless):
    """The events for which the condition is true: not false, not null."""

    name = "filter"
    order = Order.KEPT
    names_columns = True

    predicate: Expr

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return wanted | self.predicate.columns()

    def means(self) -> Means:
        return (self.predicate.key(),)

    def details(self) -> str:
        return repr(self.predicate)
