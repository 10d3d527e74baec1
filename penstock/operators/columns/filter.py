"""Filter: the events for which a condition is true; null counts as no."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.kernels.builder import KernelBuilder
from penstock.kernels.conditions import is_true
from penstock.kernels.views import Computed
from penstock.operators.columns.front import LinkScratch
from penstock.operators.run.base import Build
from penstock.operators.run.fusion import Link, is_link
from penstock.query.steps import FilterSpec


@is_link(FilterSpec)
class Filter(Link):
    """A condition, and the columns as they are."""

    def __init__(self, build: Build) -> None:
        self._predicate = build.node.spec_as(FilterSpec).predicate

    def choose(self, builder: KernelBuilder, scratch: LinkScratch) -> str:
        return is_true(builder, builder.emit(self._predicate))

    def computed(self, scratch: LinkScratch) -> Mapping[str, Computed]:
        return {}
