"""What an expression means: evaluated for one event, in plain Python, too simple to be wrong.

Types come from ``penstock.query.inference``; values are bool, int, float, str or None, and a float32 is a
float that has been rounded to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.query.expr import (
    Arithmetic,
    Call,
    Cast,
    Column,
    Comparison,
    Expr,
    InList,
    IsNull,
    Literal,
    Logic,
    Not,
    When,
    lit,
)
from penstock.query.inference import Typed, common_type, infer, literal_type
from penstock.query.types import DataType, Schema
from tests.reference_functions import REFERENCE, hashed, rank, wrap

_BITS = {DataType.INT32: 32, DataType.INT64: 64, DataType.TIMESTAMP: 64}


def evaluate(expr: Expr, row: Mapping[str, Any], schema: Schema) -> Any:
    """The value of ``expr`` for the event ``row``; None is null."""

    def value_of(operand: Expr, dtype: DataType | None = None) -> Any:
        value = evaluate(operand, row, schema)
        return value if dtype is None else cast(value, _type(operand, schema), dtype)

    match expr:
        case Column(name):
            return row[name]
        case Literal(value):
            return value if value is None else _fit(value, literal_type(expr))
        case Arithmetic(op, left, right):
            dtype = _type(expr, schema)
            common = DataType.INT64 if dtype is DataType.TIMESTAMP else dtype
            a, b = value_of(left, common), value_of(right, common)
            return None if a is None or b is None else _arithmetic(op, a, b, dtype)
        case Comparison(op, left, right):
            common = _settled(common_type(expr, (infer(left, schema), infer(right, schema))))
            a, b = value_of(left, common), value_of(right, common)
            return None if a is None or b is None else _compare(op, a, b)
        case Logic(op, left, right):
            pair = (value_of(left), value_of(right))
            decisive = op == "or"
            if decisive in pair:
                return decisive
            return None if None in pair else not decisive
        case Not(operand):
            a = value_of(operand)
            return None if a is None else not a
        case IsNull(operand):
            return value_of(operand) is None
        case InList(operand, values):
            a = value_of(operand)
            if a is None:
                return None
            dtype = _type(operand, schema)
            wanted = [lit(value).value for value in values]
            if dtype.is_float:
                wanted = [_fit(value, dtype) for value in wanted]
            return any(_compare("==", a, value) for value in wanted)
        case Call(function, operands):
            if function.name == "hash_of":
                return hashed([value_of(o) for o in operands], [_type(o, schema) for o in operands])
            # where several values make one, all are of its type
            together = _type(expr, schema) if function.name in ("least", "greatest", "coalesce") else None
            values = [value_of(operand, together) for operand in operands]
            if function.strict and None in values:
                return None
            return REFERENCE[function.name](function, values, _type(expr, schema))
        case Cast(operand, dtype):
            return value_of(operand, dtype)
        case When(branches, default):
            for condition, chosen in branches:
                if value_of(condition) is True:
                    return value_of(chosen, _type(expr, schema))
            return None if default is None else value_of(default, _type(expr, schema))
    raise TypeError(f"not an expression: {expr!r}")


def cast(value: Any, source: DataType, target: DataType) -> Any:
    """``value`` of type ``source`` as ``target``."""
    if value is None or source is target:
        return value
    if source is DataType.STRING:
        return _parse(value, target)
    if target is DataType.STRING:
        return _written(value, source)
    if target is DataType.BOOL:
        return value != 0
    if target.is_float:
        return _fit(value, target)
    bits = _BITS[target]
    if source.is_float:
        if math.isnan(value):
            return 0
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        if math.isinf(value):
            return high if value > 0 else low
        return max(low, min(high, int(value)))
    return wrap(int(value), bits)


def _written(value: Any, source: DataType) -> str:
    if source is DataType.BOOL:
        return "true" if value else "false"
    return str(float(str(np.float32(value)))) if source is DataType.FLOAT32 else str(value)


def _type(expr: Expr, schema: Schema) -> DataType:
    return _settled(infer(expr, schema))


def _settled(typed: Typed) -> DataType:
    return DataType.INT64 if typed.weak and typed.dtype is DataType.INT32 else typed.dtype


def _fit(value: Any, dtype: DataType) -> Any:
    """A number as a value of ``dtype``, rounded where that has fewer digits."""
    if dtype is DataType.FLOAT32:
        with np.errstate(over="ignore"):
            number = np.int64(value) if isinstance(value, int) else np.float64(value)
            return float(number.astype(np.float32))
    if dtype is DataType.FLOAT64:
        return float(value)
    if dtype in _BITS:
        return wrap(int(value), _BITS[dtype])
    return bool(value) if dtype is DataType.BOOL else value


def _arithmetic(op: str, a: Any, b: Any, dtype: DataType) -> Any:
    if op in ("/", "//", "%") and b == 0:
        return None
    if not dtype.is_float:
        results = {
            "+": lambda: a + b,
            "-": lambda: a - b,
            "*": lambda: a * b,
            "//": lambda: a // b,
            "%": lambda: a % b,
        }
        return wrap(results[op](), _BITS[dtype])
    x, y = dtype.numpy.type(a), dtype.numpy.type(b)
    with np.errstate(all="ignore"):
        return float({"+": x + y, "-": x - y, "*": x * y, "/": x / y if y else x}[op])


def _compare(op: str, a: Any, b: Any) -> bool:
    x, y = rank(a), rank(b)
    return {"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op]


def _parse(text: str, dtype: DataType) -> int | float | None:
    text = text.strip()
    if dtype.is_integer:
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            return None
        return int(text) if wrap(int(text), _BITS[dtype]) == int(text) else None
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
        return None
    number: float = _fit(float(text), dtype)
    return number
