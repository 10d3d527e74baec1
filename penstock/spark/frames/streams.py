"""Streams that Spark reads itself: any streaming DataFrame."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from penstock.query.connectors import Source
from penstock.query.errors import QueryError
from penstock.query.step import check_columns
from penstock.query.types import Schema
from penstock.spark.frames.types import canonical, schema_of
from penstock.spark.session.errors import SparkError
from penstock.spark.session.start import session_settings

#: A column that a frame may have beside its schema's: the text of a record that Spark could not parse.
CORRUPT = "$corrupt"

#: Settings that the meaning of lowered expressions rests on.
_MEANING = ("spark.sql.ansi.enabled", "spark.sql.caseSensitive", "spark.sql.session.timeZone")


class FrameSource(Source):
    """A source that is a streaming DataFrame. Only Spark can read it.

    A DataFrame hides its partitions, so the stream has one: an event is late if its time is below the
    watermark, the largest time of all earlier batches minus the lateness. Records in which a column is null
    that must not be, the event time among them, are bad records.
    """

    def __init__(self, ordered: bool, bounded: bool) -> None:
        self._ordered, self._bounded = ordered, bounded

    @property
    def ordered(self) -> bool:
        return self._ordered

    @property
    def bounded(self) -> bool:
        return self._bounded

    def timed_by(self, event_time: str) -> Schema:
        return Schema(
            replace(field, nullable=False) if field.name == event_time else field for field in self.schema
        )

    def checked(self, event_time: str) -> tuple[str, ...]:
        """Columns that are never null in the stream, though they may be in the DataFrame."""
        return (event_time,) if self.schema[event_time].nullable else ()

    @property
    def tells_corrupt(self) -> bool:
        """Whether the frame has the column ``CORRUPT``."""
        return False

    @abstractmethod
    def frame(self, spark: SparkSession) -> DataFrame:
        """The streaming DataFrame, each column in the Spark type that its type has here; it may also have
        the column ``CORRUPT``.
        """


class SparkStream(FrameSource):
    """Any streaming DataFrame: ``ps.sources.Spark(spark.readStream.format("rate").load())``.

    ``ordered`` promises events in the order of their time, across batches too: none is late then.
    ``bounded`` says that the stream ends; the run then ends with what is there when it starts.
    """

    def __init__(self, df: DataFrame, *, ordered: bool = False, bounded: bool = False) -> None:
        super().__init__(ordered, bounded)
        if not isinstance(df, DataFrame):
            raise QueryError(
                "not a DataFrame",
                detail=f"got a {type(df).__name__}",
                hint="pass a streaming one, e.g. spark.readStream.format('rate').load()",
            )
        if not df.isStreaming:
            raise QueryError(
                "the DataFrame is not a stream",
                detail=f"it has the columns {', '.join(df.columns)}",
                hint="make it with spark.readStream instead of spark.read",
            )
        self._df = df
        self._schema = schema_of(df.schema)
        check_columns(self._schema)

    @property
    def schema(self) -> Schema:
        return self._schema

    def frame(self, spark: SparkSession) -> DataFrame:
        check_meaning(self._df.sparkSession)
        return self._df.select([canonical(field) for field in self._df.schema.fields])

    def __repr__(self) -> str:
        return f"Spark({', '.join(self._df.columns)})"


def check_meaning(spark: SparkSession) -> None:
    """Refuses a session in which expressions would mean something else."""
    wanted = session_settings("local[*]")
    for name in _MEANING:
        found = spark.conf.get(name)
        if found is None or found.lower() != wanted[name].lower():
            raise SparkError(
                "the DataFrame's session has another meaning of expressions",
                detail=f"{name} is {found}",
                hint=f"set it to {wanted[name]} before the run: spark.conf.set('{name}', '{wanted[name]}')",
            )
