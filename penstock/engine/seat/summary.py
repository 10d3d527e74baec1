"""What a run on one node came to."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.metrics.run import RunMetrics
from penstock.metrics.summary import Summary


@dataclass(frozen=True)
class NodeSummary(Summary):
    """The end of a run, with the metrics of every operator and query."""

    metrics: RunMetrics

    @classmethod
    def of(
        cls, metrics: RunMetrics, *, complete: bool, bad_records: int = 0, open_windows: int = 0
    ) -> NodeSummary:
        """From the last metrics of a run."""
        return cls(
            complete=complete,
            elapsed_s=metrics.elapsed_s,
            read=metrics.read,
            written=metrics.written,
            queries=len(metrics.latency),
            operators=len(metrics.operators),
            late={operator.id: operator.late for operator in metrics.operators if operator.late},
            failed=metrics.failed,
            bad_records=bad_records,
            open_windows=open_windows,
            degrees=metrics.degrees,
            metrics=metrics,
        )
