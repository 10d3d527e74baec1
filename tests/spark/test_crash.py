"""A driver killed at any point and started again gives the rows of a run that nobody disturbed."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lab.bench.faults.power import PowerRecorder
from penstock.state.store import StateStore
from tests.engine.test_equivalence import difference
from tests.reference import Row, run_reference
from tests.spark import crash_app
from tests.spark.processes import ROOT, driver, to_the_end, until_killed

_WORKER = [name for name, point in crash_app.POINTS.items() if point[2] == "worker"]
_BATCH = [
    "batch begins",
    "rows collected",
    "one sink written",
    "all sinks written",
    "manifest half written",
    "manifest without its name",
    "manifest has its name",
    "batch not in Spark's log",
]


def test_a_driver_killed_between_manifest_and_spark_log_goes_on(tmp_path: Path) -> None:
    run = Killed(tmp_path, "single")
    run.until("manifest has its name:4", tasks=None)
    run.to_the_end(tasks=2)


@pytest.mark.slow
def test_a_driver_killed_in_sinks_state_and_commit_goes_on(tmp_path: Path) -> None:
    run = Killed(tmp_path, "single")
    run.until("state half written:3", tasks=None)
    run.until("one sink written:4", tasks=2)
    run.until("batch not in Spark's log:2", tasks=2)
    run.until("closing begins:1", tasks=None)
    run.to_the_end(tasks=None)


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [None, 2])
def test_a_driver_killed_at_every_named_point_goes_on(tasks: int | None, tmp_path: Path) -> None:
    run = Killed(tmp_path, "single", batch_events=20)
    choose = random.Random(f"points/{tasks}")
    run.until("sink opened:3", tasks)
    run.until("first manifest:1", tasks)
    run.until("sinks begun:1", tasks)
    run.until("deliveries known:1", tasks)
    for point in [*_BATCH, *_WORKER, "old files being removed"]:
        run.until(f"{point}:{choose.randint(1, 3)}", tasks)
    run.until("closing begins:1", tasks)
    run.until("manifest without its name:1", tasks)
    run.until("closed:1", tasks)
    run.to_the_end(tasks)


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [None, 2])
def test_a_driver_killed_from_outside_at_random_moments_goes_on(tasks: int | None, tmp_path: Path) -> None:
    run = Killed(tmp_path, "single", batch_events=20)
    choose = random.Random(f"moments/{tasks}")
    for _ in range(10):
        run.kill_after(choose.randint(0, 2), choose.uniform(0.0, 0.6), tasks)
    assert run.deaths >= 5  # the last ones may have come too late
    run.to_the_end(tasks)


@pytest.mark.slow
@pytest.mark.parametrize("joined", ["single", "joined"])
def test_a_driver_killed_while_keys_migrate_in_every_batch_goes_on(joined: str, tmp_path: Path) -> None:
    run = Killed(tmp_path, joined, batch_events=40, migrate=True)
    task_counts = itertools.cycle((2, 2, 3, 2))
    for point in (
        "state loaded:5",
        "manifest without its name:3",
        "state written:4",
        "manifest has its name:2",
    ):
        run.until(point, next(task_counts))
    run.to_the_end(next(task_counts))


@pytest.mark.slow
def test_a_driver_with_two_sources_killed_and_given_other_tasks_goes_on(tmp_path: Path) -> None:
    run = Killed(tmp_path, "joined", batch_events=40)
    task_counts = itertools.cycle((2, 5, None, 3))
    for point in ("state written:4", "all sinks written:2", "manifest has its name:2", "task done:5"):
        run.until(point, next(task_counts))
    run.kill_after(1, 0.1, next(task_counts))
    run.to_the_end(next(task_counts))


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [None, 2])
def test_a_driver_that_loses_power_goes_on_from_what_was_synced(tasks: int | None, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    recorder = PowerRecorder(tmp_path / "disk", tmp_path / "journal")
    run = Killed(tmp_path / "disk", "single", batch_events=40)
    choose = random.Random(f"power/{tasks}")
    for point in ("manifest has its name:4", "all sinks written:3"):
        recorder.begin()
        run.record(recorder)
        run.until(point, tasks)
        recorder.cut(None if run.deaths == 1 else choose)
    recorder.begin()
    run.record(recorder)
    run.to_the_end(tasks)


class Killed:
    """A run that is killed and started again in the same folder."""

    def __init__(self, folder: Path, joined: str, batch_events: int = 60, *, migrate: bool = False) -> None:
        self._folder, self._joined, self._batch_events = folder, joined, batch_events
        self._env = {crash_app.MIGRATE: "1"} if migrate else {}
        self.deaths = 0

    def record(self, recorder: PowerRecorder) -> None:
        """From now on it is recorded what the run syncs."""
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._env |= recorder.environment({**os.environ, "PYTHONPATH": paths})

    def until(self, point: str, tasks: int | None) -> None:
        """Runs until a process ends itself and the driver at a named point."""
        until_killed(*self._arguments(tasks), at=point, env=self._env)
        self.deaths += 1

    def kill_after(self, batches: int, seconds: float, tasks: int | None) -> None:
        """Kills the driver so long after it has told of so many batches, if it still runs then."""
        with driver(*self._arguments(tasks), env=self._env) as process:
            assert process.stdout is not None
            for _ in range(batches):
                process.stdout.readline()
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                self.deaths += 1

    def to_the_end(self, tasks: int | None) -> None:
        """Runs undisturbed, and compares every sink with the reference."""
        to_the_end(*self._arguments(tasks), env=self._env)
        joined = self._joined == "joined"
        app, _ = crash_app.build(None, joined)
        expected = run_reference(app.graph(), crash_app.inputs(joined))
        for query, rows in expected.items():
            missing, unexpected = difference(rows, self._rows(query))
            assert (missing, unexpected) == ([], []), f"'{query}': missing {missing}, unexpected {unexpected}"
        assert sum(map(len, expected.values())) > 1000
        latest = StateStore(self._folder / "checkpoint" / "state").latest()
        assert latest is not None
        assert latest.progress["complete"]

    def _rows(self, query: str) -> list[Row]:
        return pq.read_table(self._folder / "out" / query).to_pylist()

    def _arguments(self, tasks: int | None) -> list[str]:
        return ["tests.spark.crash_app", str(self._folder), self._joined, str(tasks), str(self._batch_events)]
