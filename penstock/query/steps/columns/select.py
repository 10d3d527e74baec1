"""Other columns for the same events."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.steps.meanings import keys_of
from penstock.query.steps.spec import Means, NamedExprs, Names, Order, Stateless, declared, system
from penstock.query.steps.texts import columns_text
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class SelectSpec(Stateless):
    """One event in, one out, with these columns."""

    name = "select"
    order = Order.KEPT
    names_columns = True

    columns: NamedExprs

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return system(wanted).union(*(expr.columns() for name, expr in self.columns if name in wanted))

    def means(self) -> Means:
        return (keys_of(self.columns),)

    def details(self) -> str:
        return columns_text(self.columns)
