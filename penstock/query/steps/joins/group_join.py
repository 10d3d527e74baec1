"""Aggregates over the events of one stream that match an event of the other."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates import Aggregate
from penstock.query.expr import Expr
from penstock.query.steps.joins.window_join import PairColumns
from penstock.query.steps.meanings import all_said, key_of, keys_of
from penstock.query.steps.spec import PLACE, TIMED, Joining, Means, NamedExprs, Names, Order, declared
from penstock.query.steps.texts import aggregates_text, columns_text, pairs_text, where_text
from penstock.query.types import Schema
from penstock.query.windows import Sliding


@declared
@dataclass(frozen=True, eq=False)
class GroupJoinSpec(Joining):
    """Every event of the left stream once per window, with aggregates over the events that match it.

    Those are the right stream's events in the same window with equal keys for which ``where`` is true of the
    pair. ``pair`` names the columns of a pair, which ``where`` and the aggregates read; ``columns`` are
    computed from the window's bounds, the left columns and the aggregates.
    """

    name = "group_join"
    order = Order.HASHED
    names_columns = True

    window: Sliding
    pair: PairColumns
    where: Expr | None
    aggregates: tuple[tuple[str, Aggregate], ...]
    columns: NamedExprs

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        of_pair = frozenset() if self.where is None else self.where.columns()
        of_pair = of_pair.union(*(aggregate.columns() for _, aggregate in self.aggregates))
        names = TIMED | {pair[index] for pair in self.on}
        names |= {theirs for name, side, theirs in self.pair if side == index and name in of_pair}
        if index == 0:
            computed = set().union(*(expr.columns() for name, expr in self.columns if name in wanted))
            return names | PLACE | (computed & set(schema.names))
        in_order = any(aggregate.function.in_order for _, aggregate in self.aggregates)
        return names | (PLACE if in_order else frozenset())

    def means(self) -> Means:
        computed = (all_said(self.aggregates), keys_of(self.columns))
        return (self.on, self.window.said(), self.pair, key_of(self.where), *computed)

    def details(self) -> str:
        aggregates = f"{aggregates_text(self.aggregates)} → {columns_text(self.columns)}"
        return f"on {pairs_text(self.on)}, {self.window}{where_text(self.where)}: {aggregates}"
