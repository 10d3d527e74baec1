"""The number of tasks: follows the work of batches and what waits behind them, and does not swing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.spark.batches import adapting
from penstock.spark.batches.adapting import BatchLoad, TaskCount
from penstock.spark.batches.reports import ReadReport, TaskReport
from tests.spark.disturbed import build, expected, rows_of


def _batches(tasks: int, *work_ms: float) -> list[BatchLoad]:
    return [BatchLoad(tasks, work, 1_000, 0) for work in work_ms]


def _backlog(waiting: int, *work_ms: float, tasks: int = 1) -> list[BatchLoad]:
    *before, last = _batches(tasks, *work_ms)
    return [*before, replace(last, waiting=waiting)]


def test_the_busiest_task_counts_and_what_all_sources_know_to_wait() -> None:
    reports = [
        TaskReport(
            ms={"engine": 200.0, "read": 50.0, "receive": 9_000.0}, read=ReadReport(events=300, waiting=900)
        ),
        TaskReport(ms={"engine": 300.0, "state_write": 10.0}, read=ReadReport(waiting=600)),
    ]
    load = BatchLoad.of(reports, 2)
    assert load == BatchLoad(2, 360.0, 300, 1_500)
    assert load.waiting_batches == 5.0


def test_starts_with_one_task() -> None:
    assert TaskCount(4).after([]) == 1


def test_more_tasks_after_three_heavy_batches_in_a_row() -> None:
    assert TaskCount(4).after(_batches(1, 900, 900)) == 1
    assert TaskCount(4).after(_batches(1, 900, 900, 900)) == 4
    assert TaskCount(4).after(_batches(1, 900, 100, 900)) == 1


def test_a_backlog_gets_more_tasks_behind_its_first_heavy_batch() -> None:
    assert TaskCount(4).after(_backlog(2_000, 900)) == 4
    assert TaskCount(4).after(_backlog(50_000, 900)) == 4


def test_a_heavy_batch_with_little_behind_it_does_not() -> None:
    assert TaskCount(4).after(_backlog(1_999, 900)) == 1
    assert TaskCount(4).after(_backlog(0, 900)) == 1
    assert TaskCount(4).after(_backlog(1_000, 900, 900)) == 4  # the third in a row is there


def test_a_backlog_of_light_batches_does_not_either() -> None:
    assert TaskCount(4).after(_backlog(50_000, 100)) == 1
    assert TaskCount(4).after(_backlog(50_000, 900, 100)) == 1


def test_a_batch_without_events_takes_nothing() -> None:
    assert TaskCount(4).after([BatchLoad(1, 0.0, 0, 5)]) == 1


def test_what_waits_changes_nothing_where_there_are_several_tasks() -> None:
    assert TaskCount(4).after(_backlog(50_000, 900, tasks=4)) == 4
    assert TaskCount(4).after(_backlog(50_000, 40, 40, 40, tasks=4)) == 1


def test_one_task_again_when_it_has_little_to_do() -> None:
    assert TaskCount(4).after(_batches(4, 40, 40, 40)) == 1
    assert TaskCount(4).after(_batches(4, 100, 100, 100)) == 4  # 400 ms for one task: that would be close


def test_batches_of_another_number_of_tasks_say_nothing() -> None:
    mixed = _batches(1, 900, 900) + _batches(4, 900)
    assert TaskCount(4).after(mixed) == 4


@pytest.mark.slow
def test_a_run_whose_every_batch_is_heavy_comes_to_several_tasks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapting, "_MORE_MS", -1.0)  # however fast the machine is
    monkeypatch.setattr(adapting, "_FEWER_MS", -1.0)
    app, sinks = build()
    run = ps.Spark(batch_events=60).start(app.graph(), app.name)
    assert run.wait(300)
    assert run.finish().complete
    tasks = [batch.tasks for batch in run.batches]
    assert tasks[0] == 1
    assert 2 in tasks[:3]
    assert rows_of(sinks) == expected()
