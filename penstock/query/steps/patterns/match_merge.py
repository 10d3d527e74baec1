"""The last of the three steps that a match by start becomes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.own_columns import TIME
from penstock.query.patterns.by_start import START
from penstock.query.steps.spec import PLACE, Means, Names, PartialStep, declared, system
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class MatchMergeSpec(PartialStep):
    """Puts the matches that the instances of a match by start have found into one order."""

    name = "match_merger"

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return PLACE.union(wanted - system(wanted), (TIME, START))

    def means(self) -> Means:
        return ()
