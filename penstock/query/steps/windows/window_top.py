"""The first events per key and window, by a ranking."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.expr import Expr
from penstock.query.steps.spec import PLACE, TIMED, Means, Names, Windowed, declared
from penstock.query.steps.texts import by_text
from penstock.query.types import Schema
from penstock.query.windows import Sliding


@declared
@dataclass(frozen=True, eq=False)
class WindowTopSpec(Windowed):
    """The k events with the largest (or smallest) ``by`` per key and window, with their ``rank`` from 1.

    ``then`` decides among equal ones: expressions, and whether the largest comes first. Nulls rank after
    everything; what is still equal goes by (event time, source, offset), or with ``ties`` has the same rank,
    and comes out as a whole.
    """

    name = "top"

    window: Sliding
    k: int
    by: Expr
    descending: bool
    then: tuple[tuple[Expr, bool], ...] = ()
    ties: bool = False

    @property
    def ranking(self) -> tuple[tuple[Expr, bool], ...]:
        """All that it ranks by, the first first."""
        return ((self.by, self.descending), *self.then)

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        names = TIMED | PLACE | (wanted & set(schema.names))
        return names.union(self.keys, *(by.columns() for by, _ in self.ranking))

    def means(self) -> Means:
        ranking = tuple((by.key(), descending) for by, descending in self.ranking)
        return (self.keys, self.window.said(), self.k, ranking, self.ties)

    def details(self) -> str:
        ranked = [f"{'largest' if descending else 'smallest'} {by!r}" for by, descending in self.ranking]
        count = f"{self.k}{' with ties' if self.ties else ''}"
        return f"{count}, {by_text(self.keys)}{self.window}: {', then '.join(ranked)}"
