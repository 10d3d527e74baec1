"""What Spark itself spends on a batch and tells only afterwards: offsets, planning, its commit log."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from penstock.metrics.batches import BatchProgress

#: Spark's names for its parts, and ours.
_PARTS = {
    "latestOffset": "spark_offsets",
    "walCommit": "spark_offset_log",
    "getBatch": "spark_batch",
    "queryPlanning": "spark_planning",
    "commitOffsets": "spark_commit_log",
}


class SparkDurations:
    """Holds each batch back until Spark has told its own share, then passes it on, in order.

    Spark is asked, not listened to: a listener in Python is sent each batch in a hundred small calls, which
    took a fifth of what Java had to do.
    """

    def __init__(self, publish: Callable[[BatchProgress], None]) -> None:
        self._publish = publish
        self._lock = threading.Lock()
        self._waiting: dict[int, BatchProgress] = {}

    def add(self, batch: BatchProgress) -> None:
        """A batch that Spark is about to commit."""
        with self._lock:
            self._waiting[batch.batch_id] = batch

    def flush(self) -> None:
        """Passes on what Spark has told nothing about, and will not."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            for batch in waiting.values():
                self._publish(batch)

    def ask(self, query: StreamingQuery) -> None:
        """Takes what Spark has told since."""
        with self._lock:
            oldest = min(self._waiting, default=None)
        newest = None if oldest is None else query.lastProgress
        if newest is None or oldest is None:
            return
        # newer than what waits: Spark has been idle since, or has gone on
        for progress in query.recentProgress if newest.batchId > oldest else [newest]:
            self.take(progress)

    def take(self, progress: StreamingQueryProgress) -> None:
        """What Spark tells of a batch; of one told already it is ignored."""
        if not _is_batch(progress):
            return
        with self._lock:
            batch = self._waiting.pop(progress.batchId, None)
            if batch is None:
                return
            told = progress.durationMs
            parts = {ours: float(told.get(theirs, 0)) for theirs, ours in _PARTS.items()}
            whole = float(told.get("triggerExecution", 0))
            known = sum(batch.parts_ms.values()) + sum(parts.values())
            parts["spark_other"] = max(whole - known, 0.0)
            self._publish(
                replace(
                    batch,
                    parts_ms={**batch.parts_ms, **parts},
                    batch_ms=max(whole, known),
                    # of what Spark aggregates nobody else sees how many events it was
                    rows_in=batch.rows_in or progress.numInputRows,
                )
            )


def _is_batch(progress: StreamingQueryProgress) -> bool:
    """Whether it tells of a batch; else Spark tells, under the next batch's number, that there is none."""
    return "addBatch" in progress.durationMs
