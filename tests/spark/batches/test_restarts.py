"""A run goes on by itself where Spark lost processes, exactly once; what comes back with the same input ends
it at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.metrics.batches import BatchProgress, RunProgress, read_progress
from penstock.query.errors import PenstockError, RunError
from penstock.spark.batches.restarts import Restarts
from penstock.spark.batches.summary import SparkSummary
from penstock.spark.session.failures import is_passing
from penstock.state.store import StateStore
from tests.batch_progress import progress
from tests.spark.disturbed import BATCH_EVENTS, Rows, Script, build, expected, rows_of, wait_for
from tests.spark.lost_processes import kill_python


@pytest.fixture(scope="module")
def undisturbed() -> Rows:
    return expected()


@pytest.fixture(scope="module", autouse=True)
def _healed(spark: SparkSession) -> Iterator[None]:
    """Spark meets the dead processes that it had in reserve one by one: other tests are to find none."""
    yield
    app, _ = build()
    app.run(on=ps.Spark(restarts=20))


class Killer:
    """Kills all Python processes behind these batches."""

    def __init__(self, *batches: int) -> None:
        self._batches = set(batches)
        self.kills = 0

    def __call__(self, batch: BatchProgress) -> None:
        if batch.batch_id in self._batches:
            self._batches.discard(batch.batch_id)
            assert kill_python() > 0
            self.kills += 1


def _run(app: ps.App, runtime: ps.Spark, killer: Killer) -> SparkSummary:
    return runtime.run(app.graph(), app.name, on_progress=killer)


def test_restarts_are_counted_in_a_row_and_a_batch_that_counts_forgives_them() -> None:
    twice = Restarts(2).one_more().one_more()
    assert twice.are_used_up
    assert not twice.after_a_batch().are_used_up
    assert twice.after_a_batch().total == 2
    assert Restarts(0).are_used_up


def test_pauses_grow_and_have_an_end() -> None:
    restarts, pauses = Restarts(9), []
    while not restarts.are_used_up:
        restarts = restarts.one_more()
        pauses.append(restarts.pause_s)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize("most", [-1, 1.5, True, "3"])
def test_a_number_of_restarts_that_is_none_is_refused(most: object) -> None:
    with pytest.raises(PenstockError, match="restarts must be a whole number"):
        ps.Spark(restarts=most)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("org.apache.spark.SparkException: Python worker failed to connect back.", True),
        ("Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker", True),
        ("Job aborted: ExecutorLostFailure (executor 1 exited caused by one of the running tasks)", True),
        ("java.io.FileNotFoundException: /tmp/blockmgr/0c/shuffle_0_1_0.index", True),
        ("java.io.IOException: No space left on device", False),
        ("java.lang.OutOfMemoryError: Java heap space\njava.io.EOFException", False),
        ("penstock.query.errors.RunError: step 'trail' failed\nPython worker exited unexpectedly", False),
        ("pyspark.errors.exceptions.base.AnalysisException: no such column", False),
    ],
)
def test_what_another_attempt_may_mend(text: str, passes: bool, spark: SparkSession) -> None:
    assert is_passing(RuntimeError(text)) is passes


def test_errors_of_ours_never_pass(spark: SparkSession) -> None:
    assert not is_passing(RunError("sink failed: java.io.EOFException"))


def test_restarts_of_all_groups_are_told() -> None:
    batches = [progress(0, group=0), progress(1, group=0, restarts=2), progress(0, group=1, restarts=1)]
    assert RunProgress.of(batches).restarts == 3


@pytest.mark.parametrize("tasks", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_whose_python_processes_are_killed_goes_on(
    tasks: int,
    spark: SparkSession,
    undisturbed: Rows,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app, sinks = build()
    killer = Killer(0, 3)
    log = tmp_path / "progress"
    summary = _run(app, ps.Spark(tasks=tasks, batch_events=BATCH_EVENTS, progress=log), killer)
    assert summary.complete
    assert rows_of(sinks) == undisturbed
    assert killer.kills == 2
    assert summary.restarts >= 2
    assert f"went on by itself after failures: {summary.restarts} times" in str(summary)
    assert read_progress(log)[-1].restarts == summary.restarts
    assert "restart 1 of 5 until a batch counts" in "\n".join(caplog.messages)


def test_without_restarts_the_run_ends_and_says_what_to_set_and_the_next_goes_on(
    spark: SparkSession, undisturbed: Rows, tmp_path: Path
) -> None:
    app, sinks = build()
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=BATCH_EVENTS)
    with pytest.raises(RunError, match=r"Spark keeps losing what it needs: .*restarts=20") as raised:
        _run(app, replace(runtime, restarts=0), Killer(0))
    assert "\n" not in str(raised.value)
    summary = app.run(on=runtime)
    assert summary.complete
    assert rows_of(sinks) == undisturbed


@pytest.mark.slow
def test_each_group_goes_on_by_itself(spark: SparkSession, undisturbed: Rows) -> None:
    app, sinks = build()
    killer = Killer(1)
    summary = _run(app, ps.Spark(groups=[["trails"]], batch_events=BATCH_EVENTS), killer)
    assert summary.complete
    assert rows_of(sinks) == undisturbed
    assert summary.restarts >= 2
    assert summary.groups == 2


def test_a_stop_while_a_run_waits_for_its_restart_ends_it(spark: SparkSession) -> None:
    app, _ = build()
    run = ps.Spark(batch_events=BATCH_EVENTS).start(app.graph(), app.name)
    before = run.restarts
    run.on_progress = Killer(0)
    wait_for(lambda: run.wait(0.01) or run.restarts > before, "the stream to break off")
    run.stop()
    summary = run.finish()
    assert not summary.complete
    assert summary.restarts == before + 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_moments_lose_nothing(seed: int, undisturbed: Rows, tmp_path: Path) -> None:
    choose = random.Random(seed)
    script = Script(tmp_path, "local[2]", choose.choice((1, 2, None)), "none", "none")
    process = script.start()
    try:
        store = StateStore(tmp_path / "checkpoint" / "state")
        for _ in range(4):
            more = len(store.versions()) + choose.randint(0, 1)
            wait_for(lambda: len(store.versions()) >= more or process.poll() is not None, "a batch")  # noqa: B023
            for java in _javas(process.pid):
                for _ in range(choose.randint(1, 3)):
                    kill_python(java)
    finally:
        rows = script.finish(process)
    assert rows == undisturbed


def _javas(pid: int) -> list[psutil.Process]:
    if not psutil.pid_exists(pid):
        return []
    return [child for child in psutil.Process(pid).children() if child.name() == "java"]
