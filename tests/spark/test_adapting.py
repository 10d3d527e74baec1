"""The number of tasks: follows the work of batches, and does not swing."""

from __future__ import annotations

from dataclasses import replace

from penstock.metrics.batches import BatchProgress
from penstock.spark.adapting import TaskCount
from tests.batch_progress import progress


def _batches(tasks: int, *work: float) -> list[BatchProgress]:
    return [
        replace(progress(number), tasks=tasks, parts_ms={"task_engine": ms, "planning": 5_000.0})
        for number, ms in enumerate(work)
    ]


def test_starts_with_one_task() -> None:
    assert TaskCount(4).after([]) == 1


def test_more_tasks_after_three_heavy_batches_in_a_row() -> None:
    assert TaskCount(4).after(_batches(1, 900, 900)) == 1
    assert TaskCount(4).after(_batches(1, 900, 900, 900)) == 4
    assert TaskCount(4).after(_batches(1, 900, 100, 900)) == 1


def test_one_task_again_when_it_has_little_to_do() -> None:
    assert TaskCount(4).after(_batches(4, 40, 40, 40)) == 1
    assert TaskCount(4).after(_batches(4, 100, 100, 100)) == 4  # 400 ms for one task: that would be close


def test_the_time_that_tasks_do_not_share_does_not_count() -> None:
    assert TaskCount(4).after(_batches(1, 100, 100, 100)) == 1


def test_batches_of_another_number_of_tasks_say_nothing() -> None:
    mixed = _batches(1, 900, 900) + _batches(4, 900)
    assert TaskCount(4).after(mixed) == 4
