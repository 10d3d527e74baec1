"""Which operator runs which kind of step, patterns included."""

from __future__ import annotations

from collections.abc import Callable

from penstock.cep.patterns.match import Match
from penstock.cep.patterns.match_merger import MatchMerger
from penstock.cep.patterns.match_set import MatchSet
from penstock.cep.patterns.match_splitter import MatchSplitter
from penstock.operators.run import catalogue
from penstock.operators.run.base import Build, Operator
from penstock.query.graph import MatchMergeSpec, MatchSetSpec, MatchSpec, MatchSplitSpec

_OPERATORS: dict[type, Callable[[Build], Operator]] = {
    MatchSpec: Match,
    MatchSplitSpec: MatchSplitter,
    MatchMergeSpec: MatchMerger,
    MatchSetSpec: MatchSet,
}


def operator_for(build: Build) -> Operator:
    """The operator for a node that is neither a source nor a sink."""
    return _OPERATORS.get(type(build.node.spec), catalogue.operator_for)(build)
