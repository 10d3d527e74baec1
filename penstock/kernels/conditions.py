"""How comparisons, logic with nulls, and choices between values are written in a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.code import ZERO, Code, either, settled
from penstock.query.expr import Comparison, InList, IsNull, Logic, Not, When, lit
from penstock.query.inference import common_type
from penstock.query.types import DataType

if TYPE_CHECKING:
    from penstock.kernels.builder import KernelBuilder


def comparison(builder: KernelBuilder, expr: Comparison) -> Code:
    common = common_type(expr, (builder.infer(expr.left), builder.infer(expr.right)))
    dtype = settled(common)
    left, right = builder.emit(expr.left, dtype), builder.emit(expr.right, dtype)
    value = builder.assign(compare(expr.op, left.value, right.value, dtype))
    return Code(value, builder.flag(either(left.null, right.null)), DataType.BOOL)


def compare(op: str, a: str, b: str, dtype: DataType) -> str:
    """A comparison of two values of one type. NaN equals NaN and is larger than every number."""
    if not dtype.is_float:
        return f"{a} {op} {b}"
    match op:
        case "==":
            return f"({a} == {b}) | (({a} != {a}) & ({b} != {b}))"
        case "!=":
            return f"({a} != {b}) & (({a} == {a}) | ({b} == {b}))"
        case "<":
            return f"({a} < {b}) | (({b} != {b}) & ({a} == {a}))"
        case "<=":
            return f"({a} <= {b}) | ({b} != {b})"
        case ">":
            return compare("<", b, a, dtype)
        case _:
            return compare("<=", b, a, dtype)


def logic(builder: KernelBuilder, expr: Logic) -> Code:
    left, right = builder.emit(expr.left), builder.emit(expr.right)
    symbol = "&" if expr.op == "and" else "|"
    if left.null is None and right.null is None:
        return Code(builder.assign(f"{left.value} {symbol} {right.value}"), None, DataType.BOOL)
    # Kleene: false decides an 'and', true decides an 'or', whatever the other side is
    value = builder.assign(f"{_true(builder, left)} {symbol} {_true(builder, right)}")
    other = "|" if expr.op == "and" else "&"
    known_false = f"({_false(builder, left)} {other} {_false(builder, right)})"
    null = builder.assign(f"not ({value} | {known_false})")
    return Code(value, null, DataType.BOOL)


def negation(builder: KernelBuilder, expr: Not) -> Code:
    code = builder.emit(expr.operand)
    return Code(builder.assign(f"not {code.value}"), code.null, DataType.BOOL)


def is_null(builder: KernelBuilder, expr: IsNull) -> Code:
    return Code(builder.emit(expr.operand).null or "False", None, DataType.BOOL)


def in_list(builder: KernelBuilder, expr: InList) -> Code:
    code = builder.emit(expr.operand)
    values = [lit(value).value for value in expr.values]
    if code.dtype is DataType.STRING:
        place = builder.parameters.add_string_table(frozenset(values).__contains__, DataType.BOOL)
        value = f"{builder.table(place)}[uint64({code.value})]"
    elif code.dtype.is_float:
        floats = np.sort(np.array([float(v) for v in values], code.dtype.numpy).astype(np.float64))  # type: ignore[arg-type]
        place = builder.parameters.add_table(floats)
        value = f"contains_float({builder.table(place)}, float64({code.value}))"
    else:
        ints = np.sort(np.array([int(v) for v in values], np.int64))  # type: ignore[arg-type]
        place = builder.parameters.add_table(ints)
        value = f"contains_int({builder.table(place)}, int64({code.value}))"
    return Code(builder.assign(value), code.null, DataType.BOOL)


def when(builder: KernelBuilder, expr: When) -> Code:
    dtype = settled(builder.infer(expr))
    if expr.default is None:
        result = Code(ZERO[dtype], "True", dtype)
    else:
        result = builder.emit(expr.default, dtype)
    for condition, chosen in reversed(expr.branches):
        taken = _true(builder, builder.emit(condition))
        branch = builder.emit(chosen, dtype)
        value = choice(builder, taken, branch.value, result.value)
        null = None
        if branch.null is not None or result.null is not None:
            null = choice(builder, taken, branch.null or "False", result.null or "False")
        result = Code(value, null, dtype)
    return result


def is_true(builder: KernelBuilder, code: Code) -> str:
    """Whether a condition holds: null counts as no."""
    return _true(builder, code)


def choice(builder: KernelBuilder, condition: str, yes: str, no: str) -> str:
    """A temporary with one of two values."""
    return builder.assign(f"{yes} if {condition} else {no}")


def _true(builder: KernelBuilder, code: Code) -> str:
    return code.value if code.null is None else builder.assign(f"{code.value} & (not {code.null})")


def _false(builder: KernelBuilder, code: Code) -> str:
    text = f"not {code.value}" if code.null is None else f"not ({code.value} | {code.null})"
    return builder.assign(text)
