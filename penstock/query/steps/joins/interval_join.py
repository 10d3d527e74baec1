"""Pairs of events of two streams that are so far apart."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.durations import duration_text
from penstock.query.steps.joins.window_join import PairColumns, pair_reads
from penstock.query.steps.spec import Joining, Means, Names, Order, declared
from penstock.query.steps.texts import pairs_text
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class IntervalJoinSpec(Joining):
    """Pairs with equal keys and ``lower <= right time - left time <= upper`` (microseconds)."""

    name = "interval_join"
    order = Order.HASHED
    names_columns = True

    lower_us: int
    upper_us: int
    columns: PairColumns

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return pair_reads(self.on, self.columns, index, wanted)

    def means(self) -> Means:
        return (self.on, self.lower_us, self.upper_us, self.columns)

    def details(self) -> str:
        interval = f"from {duration_text(self.lower_us)} to {duration_text(self.upper_us)}"
        return f"on {pairs_text(self.on)}, {interval}"
