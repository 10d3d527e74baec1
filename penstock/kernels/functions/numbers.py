"""How functions of numbers are written in a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kernels.code import SCALAR, Code, either
from penstock.kernels.functions.emitters import emits
from penstock.query.functions.numbers import Abs, Ceil, Exp, Floor, Log, Neg, Pow, Round, Sign, Sqrt
from penstock.query.functions.numbers.number_function import NumberFunction
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.kernels.builder import KernelBuilder


@emits(Neg)
def neg(builder: KernelBuilder, function: Neg, operands: list[Code], result: DataType) -> Code:
    (x,) = operands
    value = f"-{x.value}" if result.is_float else f"int64(0) - {x.value}"
    return Code(builder.assign(f"{SCALAR[result]}({value})"), x.null, result)


@emits(Abs)
def absolute(builder: KernelBuilder, function: Abs, operands: list[Code], result: DataType) -> Code:
    (x,) = operands
    value = f"abs({x.value})"
    if not result.is_float:
        value = f"{SCALAR[result]}(int64(0) - {x.value} if {x.value} < 0 else int64({x.value}))"
    return Code(builder.assign(value), x.null, result)


@emits(Floor, Ceil, Round)
def whole(builder: KernelBuilder, function: NumberFunction, operands: list[Code], result: DataType) -> Code:
    (x,) = operands
    if x.dtype.is_integer:  # whole numbers are left as they are
        value = f"{SCALAR[result]}({x.value})"
    elif isinstance(function, Round):
        value = f"round_half_away({x.value})"
    else:
        value = f"to_int64(np.{function.name}({x.value}))"
    return Code(builder.assign(value), x.null, result)


@emits(Sqrt, Exp, Log)
def transcendental(
    builder: KernelBuilder, function: NumberFunction, operands: list[Code], result: DataType
) -> Code:
    (x,) = operands
    return Code(builder.assign(f"np.{function.name}(float64({x.value}))"), x.null, result)


@emits(Pow)
def power(builder: KernelBuilder, function: Pow, operands: list[Code], result: DataType) -> Code:
    x, y = operands
    value = builder.assign(f"math.pow(float64({x.value}), float64({y.value}))")
    return Code(value, builder.flag(either(x.null, y.null)), result)


@emits(Sign)
def sign(builder: KernelBuilder, function: Sign, operands: list[Code], result: DataType) -> Code:
    (x,) = operands
    value = f"{SCALAR[result]}(int64({x.value} > 0) - int64({x.value} < 0))"
    if result.is_float:
        value = f"{x.value} if {x.value} != {x.value} else {value}"
    return Code(builder.assign(value), x.null, result)
