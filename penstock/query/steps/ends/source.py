"""Where events come from."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.connectors import Source
from penstock.query.durations import duration_text
from penstock.query.steps.spec import Means, Names, Order, Stateless, declared
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class SourceSpec(Stateless):
    """Events of one source, each with its event time."""

    name = "source"
    inputs = 0
    order = Order.KEPT
    names_columns = True

    source: Source
    event_time: str
    lateness_us: int
    number: int = 0  # in the order of registration, used or not: settles ties between sources

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        raise IndexError("a source has no inputs")

    def means(self) -> Means:
        return (self.event_time,)

    def details(self) -> str:
        lateness = duration_text(self.lateness_us)
        return f"{type(self.source).__name__}, event time {self.event_time}, lateness {lateness}"
