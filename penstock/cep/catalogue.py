"""Which operator runs which kind of step, patterns included."""

from __future__ import annotations

from penstock.cep.match import Match
from penstock.operators import catalogue
from penstock.operators.base import Build, Operator
from penstock.query.graph import MatchSpec


def operator_for(build: Build) -> Operator:
    """The operator for a node that is neither a source nor a sink."""
    return Match(build) if isinstance(build.node.spec, MatchSpec) else catalogue.operator_for(build)
