"""The first of the three steps that a match by start becomes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.patterns.by_start import GIVEN
from penstock.query.patterns.degree import Degree
from penstock.query.steps.patterns.match import MatchSpec
from penstock.query.steps.spec import PLACE, TIMED, Means, Names, PartialStep, declared, system
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class MatchSplitSpec(PartialStep):
    """Deals out the events that could begin a match to the instances of a match by start."""

    name = "match_splitter"
    timed = True

    match: MatchSpec
    degree: Degree

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return TIMED.union(PLACE, self.match.asked(), wanted - system(wanted) - set(GIVEN.names))

    def means(self) -> Means:
        return self.match.means()

    def details(self) -> str:
        return f"by start: {self.match.how()}"
