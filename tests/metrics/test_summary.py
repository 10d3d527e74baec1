"""The end of a run, as people read it."""

from __future__ import annotations

from dataclasses import replace

from penstock.metrics.degree import DegreeMetrics
from penstock.metrics.summary import Summary

DONE = Summary(
    complete=True,
    elapsed_s=2.0,
    read=3_000,
    written=40,
    queries=2,
    operators=5,
    late={},
    failed={},
    bad_records=0,
    open_windows=0,
    degrees={},
)


def test_a_run_without_incidents_is_one_line() -> None:
    assert str(DONE) == (
        "complete after 2.0 s: 3,000 events read (1,500/s), 40 rows written, 2 queries, 5 operators"
    )


def test_what_came_into_no_result_is_told_with_how_to_read_it() -> None:
    summary = replace(
        DONE,
        complete=False,
        late={"per_lane": 3, "joined": 4},
        failed={"parsed": 2},
        bad_records=1_000,
        open_windows=6,
        degrees={"d": DegreeMetrics(2, 2, 2)},
    )
    assert str(summary).splitlines()[1:] == [
        "'d': degree 2",
        "late events left out of windows and joins: 7",
        "events that 'parsed' failed for, set aside: 2 (read them with .failed())",
        "bad records: 1,000 (read them with .bad_records())",
        "windows not whole when the run was stopped, so not written: 6",
    ]
    assert str(summary).startswith("stopped after")


def test_a_run_that_took_no_time_has_no_rate() -> None:
    assert replace(DONE, elapsed_s=0.0).events_per_s == 0.0
