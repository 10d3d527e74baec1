"""Progress of a batch, as a run on Spark would report it."""

from __future__ import annotations

from typing import Any

from penstock.metrics.batches import BatchProgress


def progress(batch_id: int, **changes: Any) -> BatchProgress:
    values: dict[str, Any] = {
        "batch_id": batch_id,
        "started_unix_ms": 1_700_000_000_000 + 100 * batch_id,
        "rows_in": 1_000,
        "rows_out": 3,
        "late": 1,
        "bad_records": 2,
        "watermark_us": {"cars": 1_699_999_999_000_000, "tolls": None},
        "state_rows": 40,
        "state_bytes": 4_096,
        "pending": {"per_lane": 7},
        "rows_out_by_query": {"per_lane": 2, "fast é": 1},
        "tasks": 2,
        "parts_ms": {"read": 10.0 + batch_id, "engine": 30.0},
        "batch_ms": 50.0 + batch_id,
    }
    return BatchProgress(**{**values, **changes})
