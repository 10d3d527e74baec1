"""Other columns for the same events."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from penstock.query.steps.spec import NamedExprs, Order, Stateless, declared, system
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

    def reads(self, index: int, wanted: AbstractSet[str], schema: Schema) -> AbstractSet[str]:
        return system(wanted).union(*(expr.columns() for name, expr in self.columns if name in wanted))

    def details(self) -> str:
        return columns_text(self.columns)
