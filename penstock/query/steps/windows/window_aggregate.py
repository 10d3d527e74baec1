"""Aggregates per key and window."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.aggregates import Aggregate
from penstock.query.steps.meanings import all_said
from penstock.query.steps.spec import PLACE, TIMED, Means, Names, Windowed, declared
from penstock.query.steps.texts import aggregates_text, by_text
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class WindowAggregateSpec(Windowed):
    """Emits once per key and window: the keys, ``window_start``, ``window_end``, the aggregates."""

    name = "agg"

    aggregates: tuple[tuple[str, Aggregate], ...]

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        in_order = any(aggregate.function.in_order for _, aggregate in self.aggregates)
        return TIMED | self.state_columns() | (PLACE if in_order else frozenset())

    def means(self) -> Means:
        return (self.keys, self.window.said(), all_said(self.aggregates))

    def details(self) -> str:
        return f"{by_text(self.keys)}{self.window}: {aggregates_text(self.aggregates)}"

    def state_columns(self) -> Names:
        return set(self.keys).union(*(aggregate.columns() for _, aggregate in self.aggregates))
