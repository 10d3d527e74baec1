"""Functions of numbers as native columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from penstock.query.functions.numbers import Abs, Ceil, Exp, Floor, Log, Neg, Pow, Round, Sign, Sqrt
from penstock.query.types import DataType
from penstock.spark.native.casts import SPARK_TYPES
from penstock.spark.native.functions.native import native, python_only

python_only("Java's exponentials and logarithms differ from C's in the last digit", Exp, Log, Pow)


@native(Neg)
def neg(function: Neg, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.negative(columns[0])


@native(Abs)
def absolute(function: Abs, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.abs(columns[0])


@native(Sqrt)
def sqrt(function: Sqrt, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.sqrt(columns[0].cast("double"))


@native(Round)
def nearest(function: Round, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return columns[0] if types[0].is_integer else fn.round(columns[0])


@native(Floor, Ceil)
def bound(function: Floor | Ceil, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    if types[0].is_integer:
        return columns[0].cast("bigint")
    return fn.floor(columns[0]) if isinstance(function, Floor) else fn.ceil(columns[0])


@native(Sign, copies=4)
def sign(function: Sign, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    (x,) = columns
    kind = SPARK_TYPES[result]
    known = fn.when(x < 0, fn.lit(-1).cast(kind)).when(x == 0, fn.lit(0).cast(kind))
    if result.is_float:
        known = known.when(fn.isnan(x), x)
    return known.when(x > 0, fn.lit(1).cast(kind))
