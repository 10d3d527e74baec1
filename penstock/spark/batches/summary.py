"""What a run on Spark came to, for the caller and for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from penstock.metrics.batches import RunProgress
from penstock.metrics.summary import Summary
from penstock.spark.batches.reports import summed


@dataclass(frozen=True)
class SparkSummary(Summary):
    """The end of a run, with all its batches together. What an early stop left open waits in the checkpoint
    for the next run, and is counted in rows of state."""

    progress: RunProgress
    changes: str = ""  # how the app differs from the one that wrote the checkpoint
    restarts: int = 0  # how often the run went on by itself after it had lost processes or data
    groups: int = 1  # each has read its sources for itself, and its events count in ``progress``

    _left_open: ClassVar[str] = "rows of state that wait in the checkpoint"

    def _sizes(self) -> list[str]:
        return [*super()._sizes(), f"{self.progress.batches} batches"]

    def _notes(self) -> list[str]:
        notes = [f"went on by itself after failures: {self.restarts:,} times"] if self.restarts else []
        return [*notes, self.changes] if self.changes else notes


def merged(
    summaries: Sequence[SparkSummary], groups: int, progress: RunProgress, operators: int
) -> SparkSummary:
    """The end of a run of several groups: the last ``groups`` of these, and those before they parted."""
    last = summaries[len(summaries) - groups :]
    return SparkSummary(
        complete=all(summary.complete for summary in last),
        elapsed_s=progress.elapsed_s,
        read=progress.rows_in,
        written=progress.rows_out,
        queries=sum(summary.queries for summary in last),
        operators=operators,
        late=summed(summary.late for summary in summaries),
        failed=summed(summary.failed for summary in summaries),
        bad_records=progress.bad_records,
        open_windows=sum(summary.open_windows for summary in last),
        degrees={step: degree for summary in last for step, degree in summary.degrees.items()},
        progress=progress,
        changes="\n".join(summary.changes for summary in last if summary.changes),
        restarts=sum(summary.restarts for summary in summaries),
        groups=groups,
    )
