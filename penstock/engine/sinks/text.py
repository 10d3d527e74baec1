"""How sinks that write text spell values."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def times_as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with its timestamps as ISO 8601 text in UTC, such as ``2026-01-31T08:00:00.250000Z``."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type):
            text = pc.strftime(batch.column(place), format="%Y-%m-%dT%H:%M:%SZ")
            batch = batch.set_column(place, field.with_type(pa.string()), text)
    return batch
