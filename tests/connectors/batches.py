"""A batch with every type, as sinks get it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.connectors.writer import BatchWriter, NodeSink, Resumed
from penstock.memory.arrow import arrow_schema
from penstock.query.types import Schema

SCHEMA = Schema(ts="timestamp", lane="string?", cars="int32", speed="float64?", free="bool")
ROWS: list[dict[str, Any]] = [
    {"ts": 0, "lane": "left", "cars": 3, "speed": 12.25, "free": True},
    {"ts": 1_700_000_000_250_000, "lane": None, "cars": -1, "speed": None, "free": False},
    {"ts": 1_700_000_001_000_000, "lane": 'a,"b" é', "cars": 0, "speed": 1e-300, "free": True},
]


def batch(rows: list[dict[str, Any]] = ROWS, schema: Schema = SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, arrow_schema(schema))


def begun(sink: NodeSink, schema: Schema = SCHEMA, resumed: Resumed | None = None) -> BatchWriter:
    """A writer that may write."""
    writer = sink.open_batches(schema, resumed)
    writer.begin()
    return writer
