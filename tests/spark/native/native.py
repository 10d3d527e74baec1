"""Runs lowered expressions on Spark, many in one job, and compares them with the reference."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from penstock.query.expr import Expr
from penstock.query.inference import resolved
from penstock.query.types import DataType, Schema
from penstock.spark.native.casts import SPARK_TYPES
from penstock.spark.native.lowering import lower
from tests.harness import same
from tests.reference_expressions import evaluate

_ARROW = {
    DataType.BOOL: pa.bool_(),
    DataType.INT32: pa.int32(),
    DataType.INT64: pa.int64(),
    DataType.FLOAT32: pa.float32(),
    DataType.FLOAT64: pa.float64(),
    DataType.TIMESTAMP: pa.int64(),
    DataType.STRING: pa.string(),
}
_FOLDING = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"


def check(
    spark: SparkSession,
    exprs: list[Expr],
    events: list[dict[str, Any]],
    schema: Schema,
    *,
    compiled: bool = True,
) -> None:
    """Asserts that Spark gives what the reference gives, type and value."""
    results = natively(spark, exprs, events, schema, compiled=compiled)
    for index, expr in enumerate(exprs):
        for event, got in zip(events, results[index], strict=True):
            expected = evaluate(expr, event, schema)
            read = {name: event[name] for name in expr.columns()}
            assert same(got, expected), f"{expr!r} of {read}: Spark {got!r}, reference {expected!r}"


def natively(
    spark: SparkSession,
    exprs: list[Expr],
    events: list[dict[str, Any]],
    schema: Schema,
    *,
    compiled: bool = True,
) -> list[list[Any]]:
    """The values of each expression, timestamps in microseconds; as compiled code, or interpreted."""
    # Spark interprets a projection of rows that it holds in the driver, unless that rule is off
    spark.conf.set("spark.sql.optimizer.excludedRules", _FOLDING if compiled else "")
    columns = []
    for index, expr in enumerate(exprs):
        column = lower(expr, schema)
        assert column is not None, f"{expr!r} is not lowered"
        columns.append(column.alias(f"e{index}"))
    result = frame(spark, events, schema).select(columns)
    for field, expr in zip(result.schema, exprs, strict=True):
        dtype = resolved(expr, schema).dtype
        assert field.dataType.simpleString() == SPARK_TYPES[dtype], f"{expr!r} is {field.dataType} on Spark"
    micros = [
        fn.unix_micros(field.name).alias(field.name)
        if field.dataType.typeName() == "timestamp"
        else field.name
        for field in result.schema
    ]
    table = result.select(micros).toArrow()
    return [column.to_pylist() for column in table.columns]


def frame(spark: SparkSession, events: list[dict[str, Any]], schema: Schema) -> DataFrame:
    """The events as a DataFrame with the types that ``lower`` expects."""
    fields = [pa.field(field.name, _ARROW[field.dtype], field.nullable) for field in schema]
    raw = spark.createDataFrame(pa.Table.from_pylist(events, pa.schema(fields)))
    columns = []
    for field in schema:
        name = "`" + field.name.replace("`", "``") + "`"
        column = fn.col(name)
        columns.append(
            fn.timestamp_micros(column).alias(field.name) if field.dtype is DataType.TIMESTAMP else column
        )
    return raw.select(columns)
