"""Expressions as native Spark columns, with the meaning that ``docs/expressions.md`` gives them.

What Spark does differently, and how it is bridged: ``docs/design/2026-11-16-spark-lowering.md``.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as fn

from penstock.query import expr as e
from penstock.query.inference import common_type, infer, literal_type, resolved, settled
from penstock.query.types import DataType, Schema
from penstock.spark.native import numbers
from penstock.spark.native.casts import SPARK_TYPES, cast
from penstock.spark.native.functions import copies_of, native_call, not_native

#: Some operations name an operand several times. Nested, that grows as a power; beyond this it does not pay.
MAX_NODES = 5_000


def lower(expr: e.Expr, schema: Schema) -> Column | None:
    """The native column that computes ``expr`` over a DataFrame with the columns of ``schema``.

    The DataFrame holds bool, int, bigint, float, double, string and timestamp (microseconds) columns, in a
    session as ``spark_session`` makes it: ANSI mode off, names case-sensitive.

    None means that the expression has to run in Python. That is so where it contains

    - a function for which ``penstock.spark.native.functions`` gives a reason why Spark's own differs;
    - a float cast to a string: Java writes other digits;
    - a string constant with a lone surrogate, which no UTF-8 string can hold;
    - int64 ``//`` and ``%`` by columns, or truncations, nested so deep that the plan would explode.
    """
    return _lower(expr, schema) if lowers(expr, schema) else None


def lowers(expr: e.Expr, schema: Schema) -> bool:
    """Whether ``lower`` gives a column; to be asked without Spark."""
    infer(expr, schema)
    return _is_native(expr, schema) and _nodes(expr, schema) <= MAX_NODES


def named(name: str) -> Column:
    """The column of that name, whatever characters it has."""
    return fn.col("`" + name.replace("`", "``") + "`")  # a name may hold dots and quotes


def _is_native(expr: e.Expr, schema: Schema) -> bool:
    match expr:
        case e.Cast(operand, DataType.STRING) if resolved(operand, schema).dtype.is_float:
            return False  # Java writes other digits
        case e.Literal(str() as value):
            return _is_unicode(value)
        case e.InList(_, values) if not all(_is_unicode(v) for v in values if isinstance(v, str)):
            return False
        case e.Call(function):
            if not_native(type(function)) is not None:
                return False
            if not all(_is_unicode(value) for value in vars(function).values() if isinstance(value, str)):
                return False
    return all(_is_native(child, schema) for child in expr.children())


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _nodes(expr: e.Expr, schema: Schema) -> int:
    below = sum(_nodes(child, schema) for child in expr.children())
    copies = 1
    if isinstance(expr, e.Call):
        copies = copies_of(expr.function)
    elif isinstance(expr, e.Arithmetic) and expr.op in ("//", "%"):
        copies = numbers.COPIES if resolved(expr, schema).dtype is DataType.INT64 else 2
    return 1 + copies * below


def _lower(expr: e.Expr, schema: Schema, dtype: DataType | None = None) -> Column:
    """``expr`` in its own settled type, cast to ``dtype`` if given."""
    column = _own(expr, schema)
    return column if dtype is None else cast(column, resolved(expr, schema).dtype, dtype)


def _own(expr: e.Expr, schema: Schema) -> Column:
    match expr:
        case e.Column(name):
            return named(name)
        case e.Literal(value):
            return constant(value, literal_type(expr))
        case e.Arithmetic():
            return _arithmetic(expr, schema)
        case e.Comparison(op, left, right):
            dtype = settled(common_type(expr, (infer(left, schema), infer(right, schema)))).dtype
            return _compare(op, _lower(left, schema, dtype), _lower(right, schema, dtype))
        case e.Logic(op, left, right):
            a, b = _lower(left, schema), _lower(right, schema)
            return a & b if op == "and" else a | b
        case e.Not(operand):
            return ~_lower(operand, schema)
        case e.IsNull(operand):
            return fn.isnull(_lower(operand, schema))
        case e.InList():
            return _in_list(expr, schema)
        case e.Cast(operand, dtype):
            return _lower(operand, schema, dtype)
        case e.Call(function, operands):
            columns = [_lower(operand, schema) for operand in operands]
            types = [resolved(operand, schema).dtype for operand in operands]
            return native_call(function, columns, types, resolved(expr, schema).dtype)
        case e.When():
            return _when(expr, schema)
    raise TypeError(f"not an expression: {expr!r}")


def constant(value: bool | int | float | str | None, dtype: DataType) -> Column:
    """A constant of exactly that type."""
    if dtype is DataType.TIMESTAMP:
        return fn.timestamp_micros(fn.lit(value).cast("bigint"))
    return fn.lit(value).cast(SPARK_TYPES[dtype])


def _arithmetic(expr: e.Arithmetic, schema: Schema) -> Column:
    dtype = resolved(expr, schema).dtype
    operand = DataType.INT64 if dtype is DataType.TIMESTAMP else dtype  # timestamps compute as integers
    left, right = _lower(expr.left, schema, operand), _lower(expr.right, schema, operand)
    match expr.op:
        case "//":
            result = numbers.floor_divide(left, right, operand, _known(expr.right))
        case "%":
            result = numbers.floor_modulo(left, right, operand, _known(expr.right))
        case "+":
            result = left + right
        case "-":
            result = left - right
        case "*":
            result = left * right
        case _:
            result = left / right  # a divisor of zero gives null, also for floats
    return fn.timestamp_micros(result) if dtype is DataType.TIMESTAMP else result


def _known(divisor: e.Expr) -> int | None:
    is_known = isinstance(divisor, e.Literal) and isinstance(divisor.value, int)
    return int(divisor.value) if is_known else None  # type: ignore[attr-defined]


def _compare(op: str, a: Column, b: Column) -> Column:
    match op:
        case "==":
            return a == b
        case "!=":
            return a != b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case _:
            return a >= b


def _in_list(expr: e.InList, schema: Schema) -> Column:
    operand, dtype = _lower(expr.operand, schema), resolved(expr.operand, schema).dtype
    values = [e.lit(value).value for value in expr.values]
    if dtype.is_float:
        # in double, where a float32 and a constant rounded to float32 are exact
        with np.errstate(over="ignore"):
            rounded = [float(dtype.numpy.type(value)) for value in values]
        return operand.cast("double").isin(rounded)
    if dtype is DataType.TIMESTAMP:
        return fn.unix_micros(operand).isin(values)
    return operand.cast("bigint").isin(values) if dtype.is_integer else operand.isin(values)


def _when(expr: e.When, schema: Schema) -> Column:
    dtype = resolved(expr, schema).dtype
    branches = [
        (_lower(condition, schema), _lower(value, schema, dtype)) for condition, value in expr.branches
    ]
    chain = reduce(lambda so_far, branch: so_far.when(*branch), branches[1:], fn.when(*branches[0]))
    return chain if expr.default is None else chain.otherwise(_lower(expr.default, schema, dtype))
