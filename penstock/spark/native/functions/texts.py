"""Functions of strings as native columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from penstock.query.functions.texts import (
    Concat,
    Contains,
    EndsWith,
    Length,
    Lower,
    RegexpExtract,
    RegexpMatch,
    Replace,
    SplitPart,
    StartsWith,
    Substr,
    Trim,
    Upper,
)
from penstock.query.types import DataType
from penstock.spark.native.functions.native import native, python_only

_REST = 2**31 - 1  # as many characters as there are

python_only(
    "Spark has another version of Unicode than Python: letters that one of them does not know come out "
    "differently",
    Lower,
    Upper,
)
python_only("Java's regular expressions mean other things than Python's", RegexpMatch, RegexpExtract)


@native(Length)
def length(function: Length, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.char_length(columns[0])


@native(StartsWith)
def starts(function: StartsWith, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return columns[0].startswith(fn.lit(function.prefix))


@native(EndsWith)
def ends(function: EndsWith, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return columns[0].endswith(fn.lit(function.suffix))


@native(Contains)
def contains(function: Contains, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return columns[0].contains(fn.lit(function.part))


@native(Trim)
def trim(function: Trim, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.btrim(columns[0], fn.lit(function.characters))


@native(Substr)
def substr(function: Substr, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    count = _REST if function.length is None else min(function.length, _REST)
    return fn.substr(columns[0], fn.lit(min(function.start, _REST - 1) + 1), fn.lit(count))


@native(Replace)
def replace(function: Replace, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.replace(columns[0], fn.lit(function.old), fn.lit(function.new))


@native(SplitPart)
def split_part(function: SplitPart, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.split_part(columns[0], fn.lit(function.separator), fn.lit(min(function.part, _REST)))


@native(Concat)
def concat(function: Concat, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.concat(*columns)
