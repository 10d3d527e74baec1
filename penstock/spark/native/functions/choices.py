"""Choices between values, and hashes of several, as native columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from penstock.query.functions.choices import Coalesce, Greatest, HashOf, Least
from penstock.query.types import DataType
from penstock.spark.native.casts import cast
from penstock.spark.native.functions.native import native


@native(Least, Greatest)
def extreme(
    function: Least | Greatest, columns: list[Column], types: list[DataType], result: DataType
) -> Column:
    values = _in_one_type(columns, types, result)
    if len(values) == 1:  # Spark wants two
        return values[0]
    return fn.least(*values) if isinstance(function, Least) else fn.greatest(*values)


@native(Coalesce)
def coalesce(function: Coalesce, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.coalesce(*_in_one_type(columns, types, result))


@native(HashOf)
def hash_of(function: HashOf, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.xxhash64(*columns)


def _in_one_type(columns: list[Column], types: list[DataType], result: DataType) -> list[Column]:
    return [cast(column, dtype, result) for column, dtype in zip(columns, types, strict=True)]
