"""Which operator runs which kind of step, patterns included."""

from __future__ import annotations

from penstock.cep.match import Match
from penstock.cep.match_set import MatchSet
from penstock.operators import catalogue
from penstock.operators.base import Build, Operator
from penstock.query.graph import MatchSetSpec, MatchSpec


def operator_for(build: Build) -> Operator:
    """The operator for a node that is neither a source nor a sink."""
    spec = build.node.spec
    if isinstance(spec, MatchSpec):
        return Match(build)
    return MatchSet(build) if isinstance(spec, MatchSetSpec) else catalogue.operator_for(build)
