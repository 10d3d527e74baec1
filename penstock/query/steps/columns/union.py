"""Several streams as one."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.steps.spec import Means, Names, Order, Stateless, declared
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class UnionSpec(Stateless):
    """The events of all inputs; an event that comes by two of them comes twice."""

    name = "union"
    inputs = None
    order = Order.MULTIPLIED
    names_columns = False

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return wanted

    def means(self) -> Means:
        return ()

    def details(self) -> str:
        return ""
