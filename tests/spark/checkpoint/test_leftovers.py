"""What killed runs have left is removed by the next start, and nothing else."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.checkpoints.folders import Checkpoint
from penstock.checkpoints.leftovers import remove_abandoned
from penstock.checkpoints.lock import CheckpointLock
from penstock.state.store import StateStore
from tests.spark.checkpoint.test_resume import check, expected_of, lanes, stopped_after, written


def files_of(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_a_start_removes_what_a_killed_run_has_left(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    runtime = ps.Spark(checkpoint=checkpoint, batch_events=60)
    stopped_after(runtime, lanes(tmp_path / "out"), 1)
    latest = StateStore(checkpoint / "state").latest()
    assert latest is not None
    version = latest.version
    orphan = f"v{version + 1:012d}-t00000-a7-dead.state"
    counts = next(path for path in (tmp_path / "out").iterdir() if path.name == "counts")
    left = [
        checkpoint / "state" / "data" / orphan,
        checkpoint / "state" / "data" / f"tmp-0f-{orphan}",
        checkpoint / "state" / "manifests" / f"tmp-0f-{version + 1}.json",
        checkpoint / "sources" / "lanes" / "tmp-0f-files-000000000000.json",
        checkpoint / "shipped" / "source-dead.arrow",
        checkpoint / "shipped" / "tmp-0f-source-dead.arrow",
        checkpoint / "results" / "dead.rows",
        checkpoint / "tmp-0f-groups.json",
        checkpoint / "spark" / "offsets" / ".2.dead.tmp",
        counts / ".batch-000000000002.parquet.tmp",
    ]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("of a killed run")
    stopped_after(runtime, lanes(tmp_path / "out"), 2)
    assert not files_of(tmp_path) & {path.name for path in left}
    assert lanes(tmp_path / "out").run(on=runtime).complete
    check(written(tmp_path / "out"), expected_of(lanes(None)))


def test_folders_of_runs_whose_process_is_gone_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead, alive, young = (Path(Checkpoint.at(None).root) for _ in range(3))
    lock = CheckpointLock(str(alive))
    (dead / "state").mkdir()
    for name in ("penstock-run-of-the-users-own.txt", "penstock-other"):
        (tmp_path / name).write_text("not ours")
    for path in tmp_path.iterdir():
        if path != young:
            os.utime(path, (0, 0))
    remove_abandoned()
    assert not dead.exists()
    assert alive.is_dir()
    assert young.is_dir()
    assert len(list(tmp_path.iterdir())) == 4
    lock.free()
    remove_abandoned()
    assert not alive.exists()


def test_versions_to_go_back_to_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    runtime = ps.Spark(checkpoint=tmp_path / "checkpoint", batch_events=10, keep_versions=3)
    stopped_after(runtime, lanes(tmp_path / "out"), 20)
    assert len(StateStore(tmp_path / "checkpoint" / "state").versions()) == 3
