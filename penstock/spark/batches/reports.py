"""What tasks report to the driver, and the one form in which that travels.

What is zero or empty is not sent, so a report is as large as what its task did, however many virtual
partitions there are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.metrics.degree import DegreeMetrics, merged_degrees
from penstock.operators.run.endless import Remembered
from penstock.state.manifest import FileEntry


@dataclass(frozen=True)
class PartitionRows:
    """Rows by virtual partition; those without any take no space."""

    partitions: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> PartitionRows:
        """From the rows of all partitions.

        >>> PartitionRows.of(np.array([0, 5, 0, 7]))
        PartitionRows(partitions=(1, 3), rows=(5, 7))
        """
        partitions = np.flatnonzero(counts)
        return cls(tuple(partitions.tolist()), tuple(counts[partitions].tolist()))

    def add_to(self, totals: NDArray[np.int64]) -> None:
        """Adds them to the rows of all partitions."""
        totals[np.array(self.partitions, np.int64)] += np.array(self.rows, np.int64)


@dataclass(frozen=True)
class HotRows:
    """A key that had more events of a channel than a task's part of them."""

    channel: int
    key: tuple[str, ...]
    rows: int


@dataclass(frozen=True)
class ReadReport:
    """What was read of the sources."""

    events: int = 0
    bad: int = 0  # records that are none
    waiting: int = 0  # about how many events wait behind the batch
    marks: Mapping[str, str] = field(default_factory=dict)  # by source: by which its journal is known again


@dataclass(frozen=True)
class LeftOut:
    """Events that came into no result, by step."""

    late: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)  # for which functions failed


@dataclass(frozen=True)
class StateReport:
    """The state that a task wrote."""

    entry: FileEntry | None = None  # None: there is none
    pending: Mapping[str, int] = field(default_factory=dict)  # rows by operator
    remembered: Mapping[str, Remembered] = field(default_factory=dict)  # by step: what it keeps for ever
    held: PartitionRows = PartitionRows()  # rows of state; told only where several tasks share the keys


@dataclass(frozen=True)
class RoutedReport:
    """What left a task for others; told only where several share the keys."""

    sent: Mapping[int, PartitionRows] = field(default_factory=dict)  # by the stage that it is for
    by_channel: Mapping[int, int] = field(default_factory=dict)
    hot: tuple[HotRows, ...] = ()


@dataclass(frozen=True)
class TaskReport:
    """All that one task tells of one batch."""

    stage: int = 0
    task: int = 0
    ms: Mapping[str, float] = field(default_factory=dict)  # what each part took
    cpu_ns: int = 0  # of work that goes by keys, where several tasks share them
    busy_ns: Mapping[str, int] = field(default_factory=dict)  # by step, if the run asks for it
    degrees: Mapping[str, DegreeMetrics] = field(default_factory=dict)  # by step
    read: ReadReport = ReadReport()
    left_out: LeftOut = LeftOut()
    state: StateReport = StateReport()
    routed: RoutedReport = RoutedReport()

    def to_bytes(self) -> bytes:
        return json.dumps(self, default=_plain, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> TaskReport:
        body = json.loads(data)
        state, routed = body["state"], body["routed"]
        entry = state.get("entry")
        return cls(
            **{
                **body,
                "degrees": {step: DegreeMetrics.of(told) for step, told in body.get("degrees", {}).items()},
                "read": ReadReport(**body["read"]),
                "left_out": LeftOut(**body["left_out"]),
                "state": StateReport(
                    None if entry is None else FileEntry.of(entry),
                    state.get("pending", {}),
                    {step: Remembered(**size) for step, size in state.get("remembered", {}).items()},
                    _partition_rows(state["held"]),
                ),
                "routed": RoutedReport(
                    {int(stage): _partition_rows(rows) for stage, rows in routed.get("sent", {}).items()},
                    {int(channel): rows for channel, rows in routed.get("by_channel", {}).items()},
                    tuple(
                        HotRows(hot["channel"], tuple(hot["key"]), hot["rows"])
                        for hot in routed.get("hot", ())
                    ),
                ),
            }
        )


@dataclass(frozen=True)
class BatchReport:
    """The reports of a batch's tasks together."""

    read: ReadReport
    left_out: LeftOut
    files: tuple[FileEntry, ...]
    pending: Mapping[str, int]
    remembered: Mapping[str, Remembered]
    busy_ns: Mapping[str, int]
    degrees: Mapping[str, DegreeMetrics]

    @classmethod
    def of(cls, reports: Sequence[TaskReport]) -> BatchReport:
        marks: dict[str, str] = {}
        remembered: dict[str, Remembered] = {}
        for report in reports:
            marks.update(report.read.marks)
            for step, size in report.state.remembered.items():
                remembered[step] = remembered.get(step, Remembered(0, 0)) + size
        return cls(
            ReadReport(
                sum(report.read.events for report in reports),
                sum(report.read.bad for report in reports),
                sum(report.read.waiting for report in reports),
                marks,
            ),
            LeftOut(
                summed(report.left_out.late for report in reports),
                summed(report.left_out.failed for report in reports),
            ),
            tuple(report.state.entry for report in reports if report.state.entry is not None),
            summed(report.state.pending for report in reports),
            remembered,
            summed(report.busy_ns for report in reports),
            merged_degrees(told for report in reports for told in report.degrees.items()),
        )


def summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts by the same names, added up."""
    totals: Counter[str] = Counter()
    for one in counts:
        totals.update(one)
    return dict(totals)


def slowest_ms(reports: Iterable[TaskReport]) -> dict[str, float]:
    """Each part of the slowest task: the others wait for it."""
    slowest: dict[str, float] = {}
    for report in reports:
        for part, ms in report.ms.items():
            slowest[part] = max(slowest.get(part, 0.0), ms)
    return slowest


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, FileEntry):
        return value.plain()
    needed = (f.name for f in fields(value) if f.default is MISSING and f.default_factory is MISSING)
    always = set(needed)
    return {name: content for name, content in vars(value).items() if content or name in always}


def _partition_rows(body: Mapping[str, list[int]]) -> PartitionRows:
    return PartitionRows(tuple(body.get("partitions", ())), tuple(body.get("rows", ())))
