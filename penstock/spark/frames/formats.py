"""Spark's own streaming formats by name: the DataFrame is made when the run starts."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql import types as t

from penstock.query.errors import QueryError
from penstock.query.step import check_columns
from penstock.query.types import DataType, Schema
from penstock.spark.frames.streams import CORRUPT, FrameSource, check_meaning
from penstock.spark.frames.types import struct_of
from penstock.spark.native.lowering import named
from penstock.spark.session.errors import SparkError

_RATE = Schema(timestamp="timestamp", value="int64")
_KAFKA = Schema(
    key="string?",
    value="string?",
    topic="string",
    partition="int32",
    offset="int64",
    timestamp="timestamp",
    timestampType="int32",
)
_FIXED = {
    "rate": _RATE,
    "rate-micro-batch": _RATE,
    "socket": Schema(value="string"),
    "kafka": _KAFKA,
    "text": Schema(value="string"),
}
_TEXT_RECORDS = ("csv", "json")
_TABLES = ("parquet", "orc", *_TEXT_RECORDS)
_FILES = ("text", *_TABLES)
_PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"


class SparkFormat(FrameSource):
    """A stream that one of Spark's own formats reads: ``ps.sources.SparkFormat("rate", rowsPerSecond=10)``.

    Files (parquet, orc, csv, json) need a ``schema``, and all files a ``path``. The others have a schema of
    their own: rate and rate-micro-batch (timestamp, value), socket and text (value), kafka (key and value as
    strings, topic, partition, offset, timestamp, timestampType). ``options`` go to Spark as they are.

    A record of a file that Spark cannot parse, or that is null where the schema allows none, is a bad record.
    To know, Spark reads every column without ``?``: leave out columns that nobody needs.
    """

    def __init__(
        self,
        format: str,
        schema: Schema | Mapping[str, str | DataType] | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        ordered: bool = False,
        bounded: bool = False,
        **options: str | bool | int | float,
    ) -> None:
        super().__init__(ordered, bounded)
        if format not in _FIXED and format not in _TABLES:
            raise QueryError(
                "unknown format",
                detail=f"got {format!r}",
                hint=f"write one of {', '.join((*_FIXED, *_TABLES))}; for any other make the DataFrame and "
                "pass it to ps.sources.Spark(df)",
            )
        if (path is None) == (format in _FILES):
            needed = "needs a path" if path is None else "has no path"
            hint = "write path='folder'" if path is None else "leave path out"
            raise QueryError(f"format '{format}' {needed}", hint=hint)
        self._format = format
        self._path = None if path is None else os.fspath(path)
        self._options = options
        self._schema = self._known_schema(schema)
        check_columns(self._schema)

    @property
    def schema(self) -> Schema:
        return self._schema

    def checked(self, event_time: str) -> tuple[str, ...]:
        if self._format in _FIXED:  # their columns are there, whatever Spark declares
            return ()
        return tuple(field.name for field in self.timed_by(event_time) if not field.nullable)

    def frame(self, spark: SparkSession) -> DataFrame:
        check_meaning(spark)
        reader = spark.readStream.format(self._format).options(**self._options)
        if self._format in _TABLES:
            struct = struct_of(self._schema)
            if self.tells_corrupt:
                struct = struct.add(t.StructField(CORRUPT, t.StringType()))
                reader = reader.option("columnNameOfCorruptRecord", CORRUPT)
            reader = reader.schema(struct)
        try:
            loaded = reader.load(self._path)
        except PySparkException as error:
            raise self._not_loaded(error) from error
        columns = [self._column(name) for name in self._schema.names]
        return loaded.select([*columns, named(CORRUPT)] if self.tells_corrupt else columns)

    @property
    def tells_corrupt(self) -> bool:
        """Whether Spark keeps what it cannot parse; someone who chooses a mode has chosen otherwise."""
        return self._format in _TEXT_RECORDS and not any(
            name.lower() in ("mode", "columnnameofcorruptrecord") for name in self._options
        )

    def _known_schema(self, given: Schema | Mapping[str, str | DataType] | None) -> Schema:
        if self._format in _TABLES:
            if given is None:
                raise QueryError(
                    f"format '{self._format}' needs a schema",
                    hint="write e.g. schema={'ts': 'timestamp', 'speed': 'float64?'}",
                )
            return Schema.of(given)
        if given is not None:
            raise QueryError(
                f"format '{self._format}' has a schema of its own",
                detail=f"it is {_FIXED[self._format]!r}",
                hint="leave schema out",
            )
        fixed = _FIXED[self._format]
        stamped = str(self._options.get("includeTimestamp", False)).lower() == "true"
        if self._format == "socket" and stamped:
            return Schema([*fixed.fields, *Schema(timestamp="timestamp").fields])
        return fixed

    def _column(self, name: str) -> Column:
        if self._format == "kafka" and name in ("key", "value"):
            # strings must be UTF-8; bytes are whatever the producer sent
            return fn.make_valid_utf8(named(name).cast("string")).alias(name)
        return named(name)

    def _not_loaded(self, error: PySparkException) -> SparkError:
        said = str(error).strip().splitlines()[0]
        hint = "see Spark's documentation of the format for its options"
        if self._format == "kafka" and "Failed to find" in said:
            said = "this Spark has no Kafka connector"
            hint = f"start the session with the setting spark.jars.packages={_PACKAGE}"
        return SparkError(f"Spark cannot read format '{self._format}'", detail=said, hint=hint)

    def __repr__(self) -> str:
        return f"SparkFormat({self._format!r})" if self._path is None else f"SparkFormat({self._path!r})"
