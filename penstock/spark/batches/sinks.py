"""Any Spark writer as a sink.

Importing this loads no Spark, so that sinks can be named where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.writer import BatchWriter, NodeSink, Resumed, Writer
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkWrite(NodeSink):
    """Calls ``write(df, batch_id)`` with a Spark DataFrame of each batch's rows; it is ``ps.sinks.Spark``.

    So anything that Spark can write to is a sink: ``lambda df, batch_id: df.write.mode("append")
    .saveAsTable("t")``. It is called on the driver, and costs a Spark job of its own for every batch with
    rows. Timestamps are Spark timestamps, to the microsecond. What it raises stops the run.
    """

    needs_spark = True

    def __init__(self, write: Callable[[DataFrame, int], object]) -> None:
        if not callable(write):
            raise QueryError(
                "a Spark sink needs a function",
                detail=f"got {type(write).__name__}",
                hint="write e.g. ps.sinks.Spark(lambda df, batch_id: df.write.save(f'out/{batch_id}'))",
            )
        self._write = write

    @property
    def guarantee(self) -> str:
        return self.batch_guarantee

    @property
    def batch_guarantee(self) -> str:
        return (
            "at least once: the batch in which the run failed is written again under its batch id; "
            "exactly once if the write replaces what it has of that id, since the rows may be others then"
        )

    def open(self, schema: Schema) -> Writer:
        raise RunError(
            "ps.sinks.Spark writes Spark DataFrames, which ps.Node does not have; run the app on Spark, or "
            "take another sink, such as ps.sinks.Callback(function, arrow=True)"
        )

    def open_batches(self, schema: Schema, resumed: Resumed | None) -> BatchWriter:
        return _SparkBatches(self._write)


class _SparkBatches(BatchWriter):
    def __init__(self, write: Callable[[DataFrame, int], object]) -> None:
        self._write = write

    def write_batch(self, batch_id: int, rows: pa.Table) -> None:
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        if session is None:
            raise RunError("no Spark session is active: it was stopped while the app runs")
        # In one piece: every chunk is a message of its own to the JVM, and each task gave at least one.
        self._write(session.createDataFrame(rows.combine_chunks()), batch_id)

    def delivered(self) -> Mapping[str, Any]:
        return {"kind": "spark"}
