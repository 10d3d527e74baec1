"""A run as its caller sees it, on whatever runtime: what it can be asked, and what it came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

from penstock.metrics.degree import DegreeMetrics
from penstock.metrics.watch import Totals


@dataclass(frozen=True)
class Summary:
    """The end of a run."""

    complete: bool  # the input came to its end; False: stopped before
    elapsed_s: float
    read: int  # events
    written: int  # rows
    queries: int
    operators: int
    late: Mapping[str, int]  # events left out, by step
    failed: Mapping[str, int]  # events set aside because a function failed for them, by step
    bad_records: int
    open_windows: int  # windows, and what else waits, that were not whole when the run was stopped
    degrees: Mapping[str, DegreeMetrics]  # by step that has instances

    _left_open: ClassVar[str] = "windows not whole when the run was stopped, so not written"

    @property
    def events_per_s(self) -> float:
        return self.read / self.elapsed_s if self.elapsed_s else 0.0

    def __str__(self) -> str:
        lines = [
            f"{'complete' if self.complete else 'stopped'} after {self.elapsed_s:.1f} s: "
            f"{self.read:,} events read ({self.events_per_s:,.0f}/s), {self.written:,} rows written, "
            f"{', '.join(self._sizes())}",
            *self._notes(),
            *(f"'{step}': {degree}" for step, degree in self.degrees.items()),
        ]
        if late := sum(self.late.values()):
            lines.append(f"late events left out of windows and joins: {late:,}")
        lines += [
            f"events that '{step}' failed for, set aside: {count:,} (read them with .failed())"
            for step, count in self.failed.items()
        ]
        if self.bad_records:
            lines.append(f"bad records: {self.bad_records:,} (read them with .bad_records())")
        if self.open_windows:
            lines.append(f"{self._left_open}: {self.open_windows:,}")
        return "\n".join(lines)

    def _sizes(self) -> list[str]:
        """What the first line ends with."""
        return [f"{self.queries} queries", f"{self.operators} operators"]

    def _notes(self) -> list[str]:
        """What only one runtime has to tell, a line each."""
        return []


Outcome = TypeVar("Outcome", bound=Summary, covariant=True)
Metrics = TypeVar("Metrics", covariant=True)


class RuntimeRun(Protocol[Outcome, Metrics]):
    """A run of a graph, which a runtime's ``start`` gives. All runtimes have the same."""

    def start(self) -> None:
        """Builds everything and begins."""
        ...

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end; False if it has not come in that time."""
        ...

    def stop(self) -> None:
        """Ends the run before its input does; what it has begun is done, within the grace time."""
        ...

    def finish(self) -> Outcome:
        """Closes everything after the end and sums up; raises what made the run fail."""
        ...

    def metrics(self) -> Metrics:
        """The run as it stands, in all that its runtime measures."""
        ...

    def totals(self) -> Totals:
        """The same in a few figures, alike for all."""
        ...
