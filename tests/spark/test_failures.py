"""Whatever happens to its tasks, a run gives the rows of an undisturbed one; what cannot be mended is said
plainly, and the next run goes on from the checkpoint.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.query.errors import RunError
from penstock.state.store import StateStore
from tests.spark.disturbed import BATCH_EVENTS, Mishap, Rows, build, expected, rows_of

SIDES = ("map", "stage")
TASKS = (1, 2)  # in one piece, and with a shuffle


@pytest.fixture(scope="module")
def undisturbed() -> Rows:
    return expected()


@pytest.mark.parametrize("tasks", TASKS)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["fail", "leave", "die"])
def test_a_task_that_fails_or_dies_is_done_again(
    kind: str, side: str, tasks: int, spark: SparkSession, undisturbed: Rows, tmp_path: Path
) -> None:
    mishap = Mishap(kind, side, tmp_path)
    app, sinks = build(mishap)
    summary = app.run(on=ps.Spark(tasks=tasks, batch_events=BATCH_EVENTS))
    assert mishap.happened
    assert rows_of(sinks) == undisturbed
    assert summary.complete


@pytest.mark.parametrize("tasks", TASKS)
@pytest.mark.parametrize("side", SIDES)
def test_a_function_that_always_fails_ends_the_run_and_a_mended_one_goes_on(
    side: str, tasks: int, spark: SparkSession, undisturbed: Rows, tmp_path: Path
) -> None:
    step = {"map": "checked", "stage": "trail"}[side]
    app, sinks = build(Mishap("always", side, tmp_path))
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", tasks=tasks, batch_events=BATCH_EVENTS)
    with pytest.raises(RunError) as raised:
        app.run(on=runtime)
    told = str(raised.value)
    assert "raised ValueError: no such car" in told
    assert f"step '{step}'" in told
    assert "\n" not in told
    committed = StateStore(tmp_path / "checkpoint" / "state").versions()[-1]
    assert 0 < committed < 5
    before = rows_of(sinks)
    assert before != undisturbed

    (tmp_path / "mended").touch()
    summary = app.run(on=runtime)
    assert summary.complete
    assert not summary.changes
    assert rows_of(sinks) == undisturbed
