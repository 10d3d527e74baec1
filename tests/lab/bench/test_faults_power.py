"""A power cut keeps what was synced: contents of files, names in folders, and nothing else."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.bench.faults.power import PowerRecorder
from penstock.connectors.files.durable import LogFile, replace_file, sync
from penstock.connectors.files.paths import make_folder
from penstock.state.files import Folder


@pytest.fixture
def recorder(tmp_path: Path) -> PowerRecorder:
    (tmp_path / "disk" / "old").mkdir(parents=True)
    (tmp_path / "disk" / "old" / "known").write_text("known")
    recorder = PowerRecorder(tmp_path / "disk", tmp_path / "journal")
    recorder.begin()
    return recorder


def tree(folder: Path) -> dict[str, str]:
    """The text of every file below a folder; folders end in a slash."""
    return {
        str(path.relative_to(folder)) + "/" * path.is_dir(): "" if path.is_dir() else path.read_text()
        for path in folder.rglob("*")
    }


def after_cut(recorder: PowerRecorder, write: Callable[[Path], object]) -> dict[str, str]:
    """What a cut leaves of what was written; what was there at the beginning left out."""
    with recorder.here():
        write(recorder.root)
    recorder.cut()
    return {name: text for name, text in tree(recorder.root).items() if not name.startswith("old/")}


def test_what_was_there_at_the_beginning_stays(recorder: PowerRecorder) -> None:
    (recorder.root / "old" / "known").write_text("overwritten, not synced")
    (recorder.root / "old" / "more").write_text("new, not synced")
    recorder.cut()
    assert tree(recorder.root) == {"old/": "", "old/known": "known"}


def test_a_file_needs_its_content_and_its_name_synced(recorder: PowerRecorder) -> None:
    def write(root: Path) -> None:
        for name in ("neither", "content", "name", "both"):
            (root / name).write_text(name)
            if name == "content":
                continue
            if name == "both":
                sync(root / name)
            if name in ("name", "both"):
                sync(root)
        (root / "late").write_text("late")
        sync(root / "late")

    assert after_cut(recorder, write) == {"both": "both", "content": "", "name": "", "neither": ""}


def test_a_rename_counts_with_its_folder(recorder: PowerRecorder) -> None:
    def write(root: Path) -> None:
        replace_file(root / "first", lambda path: path.write_text("one"))
        (root / "new").write_text("two")
        sync(root / "new")
        os.replace(root / "new", root / "first")

    assert after_cut(recorder, write) == {"first": "one"}


def test_a_removal_counts_with_its_folder(recorder: PowerRecorder) -> None:
    os.unlink(recorder.root / "old" / "known")
    recorder.image(recorder.journal / "before")
    with recorder.here():
        sync(recorder.root / "old")
    recorder.cut()
    assert tree(recorder.journal.parent / "disk") == {"old/": ""}


def test_a_file_that_grows_has_the_length_of_its_last_sync(recorder: PowerRecorder) -> None:
    def write(root: Path) -> None:
        log = LogFile(root / "log")
        for line in (b"one\n", b"two\n"):
            log.append(line)
            log.sync()
        with (root / "log").open("a") as file:
            file.write("three\n")
        log.close()

    assert after_cut(recorder, write) == {"log": "one\ntwo\n"}


def test_files_of_the_state_are_there_when_write_returns(recorder: PowerRecorder) -> None:
    folder = recorder.root / "old"
    assert after_cut(recorder, lambda _: Folder(folder).write("7.json", b"{}")) == {}
    assert tree(folder) == {"known": "known", "7.json": "{}"}


def test_an_inode_taken_again_is_another_file(recorder: PowerRecorder) -> None:
    def write(root: Path) -> None:
        for number in range(20):
            (root / "file").write_text(f"synced {number}")
            sync(root / "file")
            os.unlink(root / "file")
        (root / "other").write_text("never synced")
        sync(root)

    assert after_cut(recorder, write) == {"other": ""}


def test_chance_keeps_names_and_parts_that_were_not_synced(recorder: PowerRecorder) -> None:
    (recorder.root / "new").write_text("0123456789")
    images = set()
    for seed in range(30):
        target = recorder.journal / f"image-{seed}"
        recorder.image(target, random.Random(seed))
        assert (target / "old" / "known").read_text() == "known"
        images.add(tree(target).get("new"))
    assert images == {None, "", "01234", "0123456789"}


def test_processes_are_recorded_with_those_that_they_start(recorder: PowerRecorder) -> None:
    inner = """
import os
for name in ("synced", "lost"):
    with open(name, "w") as file:
        file.write(name)
        file.flush()
        if name == "synced":
            os.fsync(file)
folder = os.open(".", os.O_RDONLY)
os.fsync(folder)
if os.fork() == 0:
    os.unlink("lost")
    os.fsync(folder)
    os._exit(0)
os.wait()
"""
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}], check=True)"
    environment = recorder.environment(os.environ)
    for _ in range(2):  # also after a cut
        subprocess.run([sys.executable, "-c", outer], env=environment, cwd=recorder.root, check=True)
        recorder.cut()
        assert tree(recorder.root) == {"old/": "", "old/known": "known", "synced": "synced"}
        (recorder.root / "synced").unlink()
        recorder.begin()


def test_folders_of_output_are_there_after_a_cut(recorder: PowerRecorder) -> None:
    assert after_cut(recorder, lambda root: make_folder(root / "new" / "out")) == {"new/": "", "new/out/": ""}
