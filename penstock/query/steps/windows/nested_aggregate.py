"""Aggregates of aggregates per key and window."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates import Aggregate
from penstock.query.expr import Expr
from penstock.query.steps.meanings import all_said, key_of
from penstock.query.steps.spec import PLACE, TIMED, Means, Names, Windowed, declared
from penstock.query.steps.texts import aggregates_text, by_text, where_text
from penstock.query.types import Schema
from penstock.query.windows import Sliding


@declared
@dataclass(frozen=True, eq=False)
class NestedAggregateSpec(Windowed):
    """Aggregates of aggregates: per key and window, first one row per ``per``, then one of those rows.

    Of the events for which ``where`` is true, ``inner`` are the aggregates per (keys, per) and window;
    ``aggregates`` are those over the inner rows for which ``having`` is true, if there are any. A row of
    results for which ``keep`` is not true is left out.
    """

    name = "nested"

    window: Sliding
    per: tuple[str, ...]
    inner: tuple[tuple[str, Aggregate], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    where: Expr | None
    having: Expr | None
    keep: Expr | None

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        names = TIMED.union(self.keys, self.per, *(aggregate.columns() for _, aggregate in self.inner))
        names |= frozenset() if self.where is None else self.where.columns()
        in_order = any(aggregate.function.in_order for _, aggregate in self.inner)
        return names | (PLACE if in_order else frozenset())

    def means(self) -> Means:
        of_events = (self.per, all_said(self.inner), key_of(self.where))
        of_rows = (all_said(self.aggregates), key_of(self.having), key_of(self.keep))
        return (self.keys, self.window.said(), of_events, of_rows)

    def details(self) -> str:
        nested = f"per {', '.join(self.per)}" + (f" {aggregates_text(self.inner)}" if self.inner else "")
        nested += where_text(self.where) + where_text(self.having, "having")
        outer = aggregates_text(self.aggregates)
        return f"{by_text(self.keys)}{self.window}: {outer} of ({nested}){where_text(self.keep, 'having')}"
