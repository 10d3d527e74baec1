"""The matches of a set of patterns per key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.query.steps.spec import PLACE, TIMED, Keyed, Means, Names, Order, declared
from penstock.query.steps.texts import by_text
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class MatchSetSpec(Keyed):
    """Reports the matches of patterns that change while the app runs."""

    name = "match_set"
    order = Order.MULTIPLIED
    names_columns = False

    patterns: Any  # penstock.query.patterns.sets.PatternSet

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return TIMED.union(PLACE, schema.names)

    def means(self) -> Means:
        # the patterns of a set come and go: they are part of a version, and not of what the step is
        return (self.keys,)

    def details(self) -> str:
        patterns = ", ".join(self.patterns.names) or "no patterns yet"
        return f"{by_text(self.keys)}{patterns}, parallel by key only"
