"""Functions of timestamps as native columns; the session's time zone is UTC."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from penstock.query.functions.times import (
    Day,
    DayOfWeek,
    FormatTime,
    Hour,
    Minute,
    Month,
    ParseTime,
    Quarter,
    Second,
    Truncate,
    Year,
)
from penstock.query.types import DataType
from penstock.spark.native.functions.native import native, python_only

python_only("Spark's formats of time are other ones than Python's", ParseTime, FormatTime)


@native(Truncate, copies=2)
def truncate(function: Truncate, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    micros = fn.unix_micros(columns[0])
    return fn.timestamp_micros(micros - fn.pmod(micros, fn.lit(function.unit_us).cast("bigint")))


@native(Year)
def year(function: Year, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.year(columns[0])


@native(Month)
def month(function: Month, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.month(columns[0])


@native(Quarter)
def quarter(function: Quarter, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.quarter(columns[0])


@native(Day)
def day(function: Day, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.dayofmonth(columns[0])


@native(Hour)
def hour(function: Hour, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.hour(columns[0])


@native(Minute)
def minute(function: Minute, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.minute(columns[0])


@native(Second)
def second(function: Second, columns: list[Column], types: list[DataType], result: DataType) -> Column:
    return fn.second(columns[0])


@native(DayOfWeek)
def day_of_week(
    function: DayOfWeek, columns: list[Column], types: list[DataType], result: DataType
) -> Column:
    return fn.weekday(columns[0]) + fn.lit(1)  # Spark counts Monday as 0
