"""Numbers on Spark, where its own operation would differ from the meaning we promise."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from penstock.query.types import DataType

#: How often the int64 forms below name an operand, at most.
COPIES = 4


def floor_divide(a: Column, b: Column, dtype: DataType, known: int | None) -> Column:
    """``a // b`` towards minus infinity; null where ``b`` is 0. ``known`` is ``b`` if it is a constant."""
    if dtype is DataType.INT32:
        # exact: two quotients of 32-bit integers differ by more than a double's rounding
        return fn.floor(a.cast("double") / b.cast("double")).cast("int")
    quotient, remainder = fn.call_function("div", a, b), a % b  # both towards zero
    if known is not None and known > 0:
        return quotient - (remainder < 0).cast("bigint")
    return quotient - _signs_differ(remainder, b).cast("bigint")


def floor_modulo(a: Column, b: Column, dtype: DataType, known: int | None) -> Column:
    """``a % b`` with the sign of ``b``; null where ``b`` is 0. ``known`` is ``b`` if it is a constant."""
    if known is not None and known > 0:
        return fn.pmod(a, b)
    if dtype is DataType.INT32:
        wide = b.cast("bigint")  # where adding the divisor cannot overflow
        return ((a.cast("bigint") % wide + wide) % wide).cast("int")
    remainder = a % b
    return fn.when(_signs_differ(remainder, b), remainder + b).otherwise(remainder)


def _signs_differ(remainder: Column, divisor: Column) -> Column:
    return (remainder != 0) & ((remainder < 0) != (divisor < 0))
