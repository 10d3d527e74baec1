"""``penstock checkpoint``, on checkpoints that no run has made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.checkpoints import copying
from penstock.checkpoints.copying import copy
from penstock.checkpoints.positions import PartitionProgress, Progress
from penstock.cli import main
from penstock.state.errors import StateError
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore

_V = 4


def make(root: Path, versions: int = 3) -> StateStore:
    """A version for each batch, each with a row of state more."""
    store = StateStore(root / "state")
    for version in range(1, versions + 1):
        keys = np.arange(version, dtype=np.int64)
        table = pa.table({"$hash": keys, "key": keys})
        entry = store.write(version, 0, 0, "run", {"per_lane": {"rows": table}}, _V).entry
        assert entry is not None
        partition = PartitionProgress(position=10 * version, records=10 * version, latest_us=10**6)
        progress = Progress({"cars": {0: partition}}, (0,) * _V, totals={"events": 10 * version})
        logs = {f"offsets/{version - 1}": "v1\n{}\n-", f"commits/{version - 1}": "v1\n{}"}
        store.commit(
            Manifest(
                version,
                "run",
                _V,
                {"per_lane": "counts"},
                progress.to_json(),
                (entry,),
                batches=version,
                fence=1,
                process="process 7 on host",
                logs=logs,
                deliveries={"out": {"kind": "mqtt"}},
            )
        )
    return store


def test_show_tells_versions_steps_positions_and_sinks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path)
    assert main(["checkpoint", "show", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    for told in (
        "newest version 3 after 3 batches and 30 events",
        "by process 7 on host, start 1, 1 tasks",
        "  1: after 1 batches, 1 rows of state",
        "  per_lane: 3 rows, 48 bytes (counts)",
        "  cars, partition 0: position 30, 30 records, latest event 1970-01-01 00:00:01 UTC",
        "  out: mqtt, cannot go back",
    ):
        assert told in text
    assert main(["checkpoint", "show", str(tmp_path), "--json"]) == 0
    (part,) = json.loads(capsys.readouterr().out)
    assert [version["version"] for version in part["versions"]] == [1, 2, 3]
    assert part["sources"]["cars"]["0"]["position"] == 30


def test_verify_says_each_problem_in_a_line_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = make(tmp_path)
    assert main(["checkpoint", "verify", str(tmp_path)]) == 0
    assert "is whole" in capsys.readouterr().out
    (file,) = store.load(2).files
    path = tmp_path / "state" / "data" / file.file
    path.write_bytes(path.read_bytes()[:-1])
    (tmp_path / "state" / "manifests" / "1.json").write_text("")
    assert main(["checkpoint", "verify", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"version 2: damaged checkpoint file: {file.file} of version 2 in ")
    assert lines[1].startswith("version 1: unreadable checkpoint: manifest 1.json in ")


def test_rollback_leaves_a_damaged_version_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = make(tmp_path)
    (tmp_path / "state" / "manifests" / "3.json").write_text("")
    with pytest.raises(StateError, match="'penstock checkpoint rollback CHECKPOINT --to VERSION'"):
        store.latest()
    assert main(["checkpoint", "rollback", str(tmp_path), "--to", "1"]) == 2
    assert "query 'out' (mqtt) would get the rows since version 1 again" in capsys.readouterr().err
    assert main(["checkpoint", "rollback", str(tmp_path), "--to", "1", "--leave-sinks"]) == 0
    assert "is back at version 1, after 1 batches; it is version 4 now" in capsys.readouterr().out
    latest = store.latest()
    assert latest is not None
    assert (latest.version, latest.batches, latest.fence) == (4, 1, 3)  # a start may have damaged it
    assert latest.files == store.load(1).files
    assert store.versions() == [1, 4]
    for version, told in (("2", "no such checkpoint: version 2"), ("9", "versions there: 1, 4")):
        assert main(["checkpoint", "rollback", str(tmp_path), "--to", version]) == 2
        assert told in capsys.readouterr().err


def test_a_version_whose_files_are_damaged_is_not_gone_back_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = make(tmp_path)
    (tmp_path / "state" / "data" / store.load(1).files[0].file).unlink()
    assert main(["checkpoint", "rollback", str(tmp_path), "--to", "1", "--leave-sinks"]) == 2
    assert "version 1 cannot be gone back to: checkpoint file is missing" in capsys.readouterr().err
    assert store.versions() == [1, 2, 3]


def test_copy_takes_the_newest_version_and_its_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, source, target = make(tmp_path / "one"), tmp_path / "one", tmp_path / "two"
    for name in ("sources/cars/000-5.lines", "spark/sources/0/0"):
        (source / name).parent.mkdir(parents=True)
        (source / name).write_text(name)
    (source / "sources" / "cars" / "tmp-0f-1.lines").write_text("half")
    assert main(["checkpoint", "copy", str(source), str(target)]) == 0
    assert f"ps.Spark(checkpoint='{target}') goes on from there" in capsys.readouterr().out
    copied = StateStore(target / "state")
    assert copied.versions() == [3]
    assert copied.load(3) == store.load(3)
    assert copied.read(3, None, range(_V)) == store.read(3, None, range(_V))
    assert (target / "sources" / "cars" / "000-5.lines").read_text() == "sources/cars/000-5.lines"
    assert len([path for path in target.rglob("*") if path.is_file()]) == 4
    assert main(["checkpoint", "copy", str(source), str(target)]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_a_file_that_vanishes_while_it_is_copied_makes_it_a_newer_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(tmp_path / "one", 2)
    copy_state = copying._copy_state

    def collected(*arguments: object) -> None:
        if store.versions()[-1] == 2:
            make_next(tmp_path / "one")
            store.collect(1)
        copy_state(*arguments)  # type: ignore[arg-type]

    def make_next(root: Path) -> None:
        make(tmp_path / "other", 3)
        for name in ("data", "manifests"):
            for path in (tmp_path / "other" / "state" / name).iterdir():
                if "3.json" in path.name or "v000000000003" in path.name:
                    path.rename(root / "state" / name / path.name)

    monkeypatch.setattr(copying, "_copy_state", collected)
    assert copy(tmp_path / "one", tmp_path / "two").versions == {None: 3}
    assert StateStore(tmp_path / "two" / "state").versions() == [3]
    assert len(list((tmp_path / "two" / "state" / "data").iterdir())) == 1


def test_a_folder_that_is_no_checkpoint_is_told_and_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = tmp_path / "nothing"
    for command in (["show"], ["verify"], ["rollback", "--to", "1"]):
        assert main(["checkpoint", *command, str(nothing)]) == 2
        assert "no checkpoint: " in capsys.readouterr().err
    assert main(["checkpoint", "copy", str(nothing), str(tmp_path / "copy")]) == 2
    assert not nothing.exists()
