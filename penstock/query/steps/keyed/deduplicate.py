"""The first event per key."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.durations import duration_text
from penstock.query.steps.spec import PLACE, TIMED, Keyed, Means, Names, Order, declared, system
from penstock.query.steps.texts import by_text
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class DeduplicateSpec(Keyed):
    """The first event per key by (event time, source, offset); with ``within_us``, again after that long."""

    name = "deduplicate"
    order = Order.KEPT
    names_columns = True

    within_us: int | None

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return TIMED.union(PLACE, wanted - system(wanted), self.keys)

    def means(self) -> Means:
        return (self.keys, self.within_us)

    def details(self) -> str:
        within = "for ever" if self.within_us is None else f"within {duration_text(self.within_us)}"
        return by_text(self.keys) + within

    def state_columns(self) -> Names:
        return set(self.keys)
