"""What a run came to, for the caller and for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.metrics.run import RunMetrics


@dataclass(frozen=True)
class Summary:
    """The end of a run."""

    metrics: RunMetrics
    complete: bool  # the input came to its end; False: stopped before
    bad_records: int
    open_windows: int  # not emitted because the run was stopped before they were whole

    @property
    def events_per_s(self) -> float:
        return self.metrics.read / self.metrics.elapsed_s if self.metrics.elapsed_s else 0.0

    def __str__(self) -> str:
        metrics = self.metrics
        lines = [
            f"{'complete' if self.complete else 'stopped'} after {metrics.elapsed_s:.1f} s: "
            f"{metrics.read:,} events read ({self.events_per_s:,.0f}/s), {metrics.written:,} rows written, "
            f"{len(metrics.latency)} queries, {len(metrics.operators)} operators"
        ]
        lines += [f"'{step}': {degree}" for step, degree in metrics.degrees.items()]
        if metrics.late:
            lines.append(f"late events left out of windows and joins: {metrics.late:,}")
        lines += set_aside(metrics.failed)
        if self.bad_records:
            lines.append(f"bad records: {self.bad_records:,} (read them with .bad_records())")
        if self.open_windows:
            lines.append(f"windows not whole when the run was stopped, so not written: {self.open_windows:,}")
        return "\n".join(lines)


def set_aside(failed: Mapping[str, int]) -> list[str]:
    """The lines that tell of events that functions failed for, by step."""
    return [
        f"events that '{step}' failed for, set aside: {count:,} (read them with .failed())"
        for step, count in failed.items()
    ]
