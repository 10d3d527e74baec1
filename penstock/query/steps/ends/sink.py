"""Where the events of a query go."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.connectors import Sink
from penstock.query.steps.spec import Means, Names, Order, Stateless, declared
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class SinkSpec(Stateless):
    """Takes whole events out of the graph."""

    name = "sink"
    order = Order.KEPT
    names_columns = False

    sink: Sink

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return set(schema.names)

    def means(self) -> Means:
        return ()

    def details(self) -> str:
        return type(self.sink).__name__
