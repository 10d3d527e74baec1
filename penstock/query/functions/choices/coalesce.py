"""The first value that is there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.query.functions.function import Function, declared
from penstock.query.inference import Typed, common_type

if TYPE_CHECKING:
    from penstock.query.expr import Expr


@declared
@dataclass(frozen=True)
class Coalesce(Function):
    """The first value that is not null; null only if all are."""

    name = "coalesce"
    operands = ("*values",)
    strict = False
    method = False

    def result(self, call: Expr, operands: tuple[Typed, ...]) -> Typed:
        nullable = all(operand.nullable for operand in operands)
        return replace(common_type(call, operands), nullable=nullable)
