"""Reports of tasks: they come back as they were, and are no larger for partitions that have nothing."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.metrics.degree import DegreeMetrics
from penstock.operators.run.endless import Remembered
from penstock.spark.batches.reports import (
    BatchReport,
    HotRows,
    LeftOut,
    PartitionRows,
    ReadReport,
    RoutedReport,
    StateReport,
    TaskReport,
    slowest_ms,
)
from penstock.state.manifest import FileEntry, FileLink

ENTRY = FileEntry(3, "v4.state", 7, 900, "xxh3:1", (1, 5), (FileLink("v3.state", 800, "xxh3:2"),))
FULL = TaskReport(
    2,
    3,
    {"engine": 1.5},
    17,
    {"per_lane": 4_000},
    {"d": DegreeMetrics(2, 0, 1)},
    ReadReport(10, 1, 5, {"cars": "a mark"}),
    LeftOut({"per_lane": 2}, {"parsed": 1}),
    StateReport(ENTRY, {"per_lane": 7}, {"first": Remembered(9, 0)}, PartitionRows((1, 5), (3, 4))),
    RoutedReport({1: PartitionRows((2,), (6,))}, {0: 6}, (HotRows(0, ("x", "1"), 4),)),
)


@pytest.mark.parametrize("report", [TaskReport(), FULL])
def test_what_is_sent_is_what_comes(report: TaskReport) -> None:
    assert TaskReport.from_bytes(report.to_bytes()) == report


def test_a_report_does_not_grow_with_partitions_that_have_nothing() -> None:
    sizes = []
    for partitions in (64, 64_000):
        rows = np.zeros(partitions, np.int64)
        rows[[3, 40]] = 5
        held = PartitionRows.of(rows)
        report = TaskReport(state=StateReport(held=held), routed=RoutedReport({1: held}))
        sizes.append(len(report.to_bytes()))
        totals = np.ones(partitions, np.int64)
        held.add_to(totals)
        assert totals.sum() == partitions + 10
        assert totals[[3, 40]].tolist() == [6, 6]
        PartitionRows().add_to(totals)
    assert sizes[0] == sizes[1] < 200


def test_reports_of_a_batch_are_added_up() -> None:
    other = TaskReport(
        ms={"engine": 3.0, "read": 1.0},
        degrees={"d": DegreeMetrics(1, 1, 2)},
        read=ReadReport(5, 1, 2),
        left_out=LeftOut({"per_lane": 1, "joined": 1}),
        state=StateReport(pending={"per_lane": 1}, remembered={"first": Remembered(1, 8)}),
    )
    both = BatchReport.of([FULL, other])
    assert both.read == ReadReport(15, 2, 7, {"cars": "a mark"})
    assert both.left_out == LeftOut({"per_lane": 3, "joined": 1}, {"parsed": 1})
    assert both.files == (ENTRY,)
    assert both.pending == {"per_lane": 8}
    assert both.remembered == {"first": Remembered(10, 8)}
    assert both.degrees == {"d": DegreeMetrics(2, 1, 2)}
    assert slowest_ms([FULL, other]) == {"engine": 3.0, "read": 1.0}
