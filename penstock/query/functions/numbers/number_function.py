"""What functions of numbers have in common: their operands, and one of two kinds of result."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from penstock.query.functions.function import Function
from penstock.query.inference import Typed, misfit
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.query.expr import Expr


class NumberFunction(Function):
    """A function of numbers that is null where one of them is; ``gives`` None keeps the operand's type."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    strict = True
    gives: ClassVar[DataType | None] = None

    def result(self, call: Expr, operands: tuple[Typed, ...]) -> Typed:
        if not all(operand.dtype.is_numeric for operand in operands):
            raise misfit(call, f"{self.name} needs a number", *operands)
        if self.gives is None:
            return operands[0]
        return Typed(self.gives, any(operand.nullable for operand in operands))
