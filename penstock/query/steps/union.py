"""Several streams as one."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from penstock.query.steps.spec import Order, Stateless, declared
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class UnionSpec(Stateless):
    """The events of all inputs; an event that comes by two of them comes twice."""

    name = "union"
    inputs = None
    order = Order.MULTIPLIED
    names_columns = False

    def reads(self, index: int, wanted: AbstractSet[str], schema: Schema) -> AbstractSet[str]:
        return wanted

    def details(self) -> str:
        return ""
