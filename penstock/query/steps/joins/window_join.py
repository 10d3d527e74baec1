"""Pairs of events of two streams in the same window."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.own_columns import ORDER
from penstock.query.steps.spec import PLACE, TIMED, Joining, Means, Names, Order, Pairs, declared
from penstock.query.steps.texts import pairs_text
from penstock.query.types import Schema
from penstock.query.windows import Sliding

PairColumns = tuple[tuple[str, int, str], ...]  # (name in the pair, input 0 or 1, its name there)


@declared
@dataclass(frozen=True, eq=False)
class WindowJoinSpec(Joining):
    """Pairs of events of two streams with equal keys in the same window."""

    name = "join"
    order = Order.HASHED
    names_columns = True

    window: Sliding
    columns: PairColumns

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return pair_reads(self.on, self.columns, index, wanted)

    def means(self) -> Means:
        return (self.on, self.window.said(), self.columns)

    def details(self) -> str:
        return f"on {pairs_text(self.on)}, {self.window}"


def pair_reads(on: Pairs, columns: PairColumns, index: int, wanted: Names) -> Names:
    """What joins read of an input: keys, and the columns of pairs that are wanted."""
    names = TIMED | {pair[index] for pair in on}
    names |= {theirs for name, side, theirs in columns if side == index and name in wanted}
    return names | (PLACE if ORDER in wanted else frozenset())
