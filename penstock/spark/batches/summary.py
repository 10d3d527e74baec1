"""What a run on Spark came to, for the caller and for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.engine.seat.summary import set_aside
from penstock.metrics.batches import RunProgress
from penstock.metrics.degree import DegreeMetrics


def merged(
    summaries: Sequence[SparkSummary], groups: int, progress: RunProgress, operators: int
) -> SparkSummary:
    """The end of a run of several groups: the last ``groups`` of these, and those before they parted."""
    late: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for summary in summaries:
        late.update(summary.late)
        failed.update(summary.failed)
    last = summaries[len(summaries) - groups :]
    return SparkSummary(
        progress=progress,
        complete=all(summary.complete for summary in last),
        queries=sum(summary.queries for summary in last),
        operators=operators,
        late=dict(late),
        failed=dict(failed),
        open_state=sum(summary.open_state for summary in last),
        changes="\n".join(summary.changes for summary in last if summary.changes),
        groups=groups,
        degrees={step: degree for summary in last for step, degree in summary.degrees.items()},
        restarts=sum(summary.restarts for summary in summaries),
    )


@dataclass(frozen=True)
class SparkSummary:
    """The end of a run."""

    progress: RunProgress
    complete: bool  # the input came to its end; False: stopped before
    queries: int
    operators: int
    late: Mapping[str, int]  # late events by operator, of this run
    open_state: int  # rows of state that an early stop left for the next run
    changes: str = ""  # how the app differs from the one that wrote the checkpoint
    degrees: Mapping[str, DegreeMetrics] = field(default_factory=dict)  # as last told, by step
    failed: Mapping[str, int] = field(default_factory=dict)  # events set aside, by step
    restarts: int = 0  # how often the run went on by itself after it had lost processes or data
    groups: int = 1  # each has read its sources for itself, and its events count in ``progress``

    @property
    def bad_records(self) -> int:
        return self.progress.bad_records

    @property
    def events_per_s(self) -> float:
        elapsed_s = self.progress.elapsed_s
        return self.progress.rows_in / elapsed_s if elapsed_s else 0.0

    def __str__(self) -> str:
        progress = self.progress
        lines = [
            f"{'complete' if self.complete else 'stopped'} after {progress.elapsed_s:.1f} s: "
            f"{progress.rows_in:,} events read ({self.events_per_s:,.0f}/s), "
            f"{progress.rows_out:,} rows written, "
            f"{self.queries} queries, {self.operators} operators, {progress.batches} batches"
        ]
        if self.restarts:
            lines.append(f"went on by itself after failures: {self.restarts:,} times")
        if self.changes:
            lines.append(self.changes)
        lines += [f"'{step}': {degree}" for step, degree in self.degrees.items()]
        if progress.late:
            lines.append(f"late events left out of windows and joins: {progress.late:,}")
        lines += set_aside(self.failed)
        if self.bad_records:
            lines.append(f"bad records: {self.bad_records:,} (read them with .bad_records())")
        if self.open_state:
            lines.append(f"rows of state that wait in the checkpoint: {self.open_state:,}")
        return "\n".join(lines)
