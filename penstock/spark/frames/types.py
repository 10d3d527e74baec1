"""Columns of Spark DataFrames as columns of streams: which types fit, and the casts that bring them there."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn
from pyspark.sql import types as t

from penstock.query.errors import QueryError
from penstock.query.types import DataType, Field, Schema
from penstock.spark.native.casts import SPARK_TYPES
from penstock.spark.native.lowering import named

_TYPES: dict[type[t.DataType], DataType] = {
    t.BooleanType: DataType.BOOL,
    t.ByteType: DataType.INT32,
    t.ShortType: DataType.INT32,
    t.IntegerType: DataType.INT32,
    t.LongType: DataType.INT64,
    t.FloatType: DataType.FLOAT32,
    t.DoubleType: DataType.FLOAT64,
    t.StringType: DataType.STRING,
    t.CharType: DataType.STRING,
    t.VarcharType: DataType.STRING,
    t.TimestampType: DataType.TIMESTAMP,
    t.TimestampNTZType: DataType.TIMESTAMP,
    t.DateType: DataType.TIMESTAMP,
}
_SPARK: dict[DataType, t.DataType] = {
    DataType.BOOL: t.BooleanType(),
    DataType.INT32: t.IntegerType(),
    DataType.INT64: t.LongType(),
    DataType.FLOAT32: t.FloatType(),
    DataType.FLOAT64: t.DoubleType(),
    DataType.TIMESTAMP: t.TimestampType(),
    DataType.STRING: t.StringType(),
}
_DAY_US = 86_400_000_000
_BINARY = "UTF8_BINARY"  # the collation that compares bytes, as we do


def schema_of(struct: t.StructType) -> Schema:
    """The columns of a DataFrame as those of a stream."""
    return Schema(Field(field.name, _data_type(field), field.nullable) for field in struct.fields)


def struct_of(schema: Schema) -> t.StructType:
    """The columns of a stream for a reader of files, in which anything can be null."""
    return t.StructType([t.StructField(field.name, _SPARK[field.dtype]) for field in schema])


def canonical(field: t.StructField) -> Column:
    """The column in the one Spark type that its type has here, by the same name.

    Times without a zone are UTC, as the session's time zone is.
    """
    column, dtype = named(field.name), _data_type(field)
    if isinstance(field.dataType, t.DateType):
        column = fn.timestamp_micros(fn.unix_date(column).cast("bigint") * fn.lit(_DAY_US))
    elif field.dataType.simpleString() != SPARK_TYPES[dtype]:
        column = column.cast(SPARK_TYPES[dtype])
    return column.alias(field.name)


def _data_type(field: t.StructField) -> DataType:
    kind = field.dataType
    dtype = _TYPES.get(type(kind))
    if dtype is None:
        fits = ", ".join(one.value for one in DataType)
        raise QueryError(
            f"column '{field.name}' has a type that streams do not have",
            detail=f"Spark type {kind.simpleString()}",
            hint=f"leave it out with df.select(...), or cast it to one of {fits}",
        )
    collation = getattr(kind, "collation", _BINARY)
    if collation != _BINARY:
        raise QueryError(
            f"column '{field.name}' has a collation",
            detail=f"it compares as {collation}, streams compare strings byte by byte",
            hint=f"write df.withColumn('{field.name}', collate('{field.name}', '{_BINARY}'))",
        )
    return dtype
