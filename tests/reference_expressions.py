"""What an expression means: evaluated for one event, in plain Python, too simple to be wrong.

Types come from ``penstock.query.inference``; values are bool, int, float, str or None, and a float32 is a
float that has been rounded to it.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import xxhash

from penstock.query.expr import (
    Arithmetic,
    Cast,
    Coalesce,
    Column,
    Comparison,
    Expr,
    Extreme,
    Hash,
    InList,
    IsNull,
    Literal,
    Logic,
    Math,
    Not,
    StringCall,
    TimeTruncate,
    When,
    lit,
)
from penstock.query.inference import Typed, common_type, infer, literal_type
from penstock.query.types import DataType, Schema

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
        case Math(function, operand):
            a = value_of(operand)
            return None if a is None else _math(function, a, _type(expr, schema))
        case Cast(operand, dtype):
            return value_of(operand, dtype)
        case StringCall(function, operand, argument):
            a = value_of(operand)
            if a is None:
                return None
            return {"lower": a.lower(), "length": len(a), "starts_with": a.startswith(argument or "")}[
                function
            ]
        case TimeTruncate(operand, unit_us):
            a = value_of(operand)
            return None if a is None else _wrap(a // unit_us * unit_us, 64)
        case Hash(operands):
            seed = 42
            for operand in operands:
                a = value_of(operand)
                if a is not None:
                    seed = xxhash.xxh64_intdigest(_bytes(a, _type(operand, schema)), seed)
            return _wrap(seed, 64)
        case Extreme(kind, operands):
            found = [
                a for a in (value_of(operand, _type(expr, schema)) for operand in operands) if a is not None
            ]
            return (min if kind == "least" else max)(found, key=_rank) if found else None
        case Coalesce(operands):
            found = [value_of(operand, _type(expr, schema)) for operand in operands]
            return next((a for a in found if a is not None), None)
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
    return _wrap(int(value), bits)


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
        return _wrap(int(value), _BITS[dtype])
    return bool(value) if dtype is DataType.BOOL else value


def _wrap(value: int, bits: int) -> int:
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


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
        return _wrap(results[op](), _BITS[dtype])
    x, y = dtype.numpy.type(a), dtype.numpy.type(b)
    with np.errstate(all="ignore"):
        return float({"+": x + y, "-": x - y, "*": x * y, "/": x / y if y else x}[op])


def _rank(value: Any) -> tuple[bool, Any]:
    """Orders values: NaN is larger than every number."""
    return (True, 0) if value != value else (False, value)


def _compare(op: str, a: Any, b: Any) -> bool:
    x, y = _rank(a), _rank(b)
    return {"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op]


def _math(function: str, a: Any, dtype: DataType) -> Any:
    if function == "sqrt":
        return math.sqrt(a) if a >= 0 else math.nan
    if function in ("neg", "abs"):
        changed = -a if function == "neg" else abs(a)
        return changed if dtype.is_float else _wrap(changed, _BITS[dtype])
    if isinstance(a, int):
        return a
    if math.isnan(a) or math.isinf(a):
        return a if function == "round" else cast(a, DataType.FLOAT64, DataType.INT64)
    if function == "round":
        whole = math.trunc(a)
        away = 1 if a > 0 else -1
        return float(whole + away if abs(a - whole) >= 0.5 else whole)
    whole = math.floor(a) if function == "floor" else math.ceil(a)
    return max(-(2**63), min(2**63 - 1, whole))


def _parse(text: str, dtype: DataType) -> int | float | None:
    text = text.strip()
    if dtype.is_integer:
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            return None
        return int(text) if _wrap(int(text), _BITS[dtype]) == int(text) else None
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
        return None
    number: float = _fit(float(text), dtype)
    return number


def _bytes(value: Any, dtype: DataType) -> bytes:
    if dtype is DataType.STRING:
        encoded: bytes = value.encode("utf-8")
        return encoded
    if dtype.is_float:
        value = math.nan if value != value else value + 0.0  # one NaN, and -0.0 becomes 0.0
        return struct.pack("<f" if dtype is DataType.FLOAT32 else "<d", value)
    return struct.pack("<i" if dtype in (DataType.BOOL, DataType.INT32) else "<q", value)
