"""Several rows for one event."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.expr import Expr
from penstock.query.steps.meanings import key_of, keys_of
from penstock.query.steps.spec import Means, NamedExprs, Names, Order, Stateless, declared, system
from penstock.query.steps.texts import columns_text, where_text
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class ExplodeSpec(Stateless):
    """One event in; out, one event per row whose condition holds (None: always)."""

    name = "explode"
    order = Order.MULTIPLIED
    names_columns = True

    rows: tuple[NamedExprs, ...]
    conditions: tuple[Expr | None, ...]

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        computed = (expr.columns() for row in self.rows for name, expr in row if name in wanted)
        conditions = (condition.columns() for condition in self.conditions if condition is not None)
        return system(wanted).union(*computed, *conditions)

    def means(self) -> Means:
        return (tuple(map(keys_of, self.rows)), tuple(map(key_of, self.conditions)))

    def details(self) -> str:
        rows = zip(self.rows, self.conditions, strict=True)
        return ", ".join(f"({columns_text(row)}){where_text(condition)}" for row, condition in rows)
