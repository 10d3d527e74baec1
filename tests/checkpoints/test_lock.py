"""Two runs never share a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.checkpoints.lock import CheckpointLock
from penstock.query.errors import RunError


def test_a_second_run_in_a_checkpoint_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    root = str(tmp_path / "checkpoint")
    first = CheckpointLock(root)
    with pytest.raises(RunError, match=r"another run uses the checkpoint '.*/checkpoint': stop it first"):
        CheckpointLock(root)
    first.free()
    CheckpointLock(root).free()


def test_whoever_removes_files_of_the_checkpoint_admits_nobody(tmp_path: Path) -> None:
    first = CheckpointLock(f"file://{tmp_path}")
    for path in tmp_path.iterdir():
        path.unlink()
    for again in (str(tmp_path), f"file://{tmp_path}", f"file:{tmp_path}"):
        with pytest.raises(RunError, match="another run uses the checkpoint"):
            CheckpointLock(again)
    first.free()


def test_a_checkpoint_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(RunError, match=r"the checkpoint '.*/taken' cannot be written: Not a directory"):
        CheckpointLock(str(tmp_path / "taken"))


def test_remote_folders_are_not_locked() -> None:
    CheckpointLock("hdfs://somewhere/checkpoint").free()
