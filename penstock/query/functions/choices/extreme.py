"""What ``least`` and ``greatest`` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.functions.function import Function
from penstock.query.inference import Typed, common_type, misfit
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.query.expr import Expr


class Extreme(Function):
    """One of several values, in their common type; null only if all are."""

    operands = ("*values",)
    strict = False
    method = False

    def result(self, call: Expr, operands: tuple[Typed, ...]) -> Typed:
        common = common_type(call, operands)
        if common.dtype in (DataType.STRING, DataType.BOOL):
            raise misfit(call, f"{self.name} needs numbers or timestamps", *operands)
        return Typed(common.dtype, all(operand.nullable for operand in operands), common.weak)
