"""Select: one event in, one out, with columns computed from it where they are read."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.kernels.builder import KernelBuilder
from penstock.kernels.code import Code
from penstock.kernels.views import Computed
from penstock.operators.columns.front import LinkScratch
from penstock.operators.run.base import Build
from penstock.operators.run.fusion import Link, is_link
from penstock.query.expr import Expr
from penstock.query.graph import Port
from penstock.query.steps import SelectSpec
from penstock.query.types import DataType


@is_link(SelectSpec)
class Select(Link):
    """Its expressions; those that nobody reads are left out."""

    passes = chooses = False

    def __init__(self, build: Build) -> None:
        target = build.outputs[Port.MAIN]
        columns = build.node.spec_as(SelectSpec).columns
        self._columns = {name: (expr, target.field(name).dtype) for name, expr in columns if name in target}

    def choose(self, builder: KernelBuilder, scratch: LinkScratch) -> str:
        return "True"

    def computes(self, name: str) -> bool:
        return name in self._columns

    def computed(self, scratch: LinkScratch) -> Mapping[str, Computed]:
        return {name: _emitting(*column) for name, column in self._columns.items()}


def _emitting(expr: Expr, dtype: DataType) -> Computed:
    def emit(builder: KernelBuilder) -> Code:
        return builder.emit(expr, dtype)

    return emit
