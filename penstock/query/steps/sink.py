"""Where the events of a query go."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from penstock.query.connectors import Sink
from penstock.query.steps.spec import Order, Stateless, declared
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class SinkSpec(Stateless):
    """Takes whole events out of the graph."""

    name = "sink"
    order = Order.KEPT
    names_columns = False

    sink: Sink

    def reads(self, index: int, wanted: AbstractSet[str], schema: Schema) -> AbstractSet[str]:
        return set(schema.names)

    def details(self) -> str:
        return type(self.sink).__name__
