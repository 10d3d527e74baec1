"""What functions of a timestamp have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from penstock.query.functions.function import Function
from penstock.query.inference import Typed, misfit
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.query.expr import Expr


class TimeFunction(Function):
    """A function of one timestamp in UTC; null of null."""

    operands = ("time",)
    strict = True
    gives: ClassVar[DataType] = DataType.INT32

    def result(self, call: Expr, operands: tuple[Typed, ...]) -> Typed:
        (operand,) = operands
        if operand.dtype is not DataType.TIMESTAMP:
            raise misfit(call, f"{self.name} needs a timestamp", operand)
        return Typed(self.gives, operand.nullable)
