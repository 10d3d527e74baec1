"""The state store: a version is whole or not there, whatever crashed, raced or was replayed around it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from penstock.state.errors import StateError
from penstock.state.files import Folder, unfenced
from penstock.state.manifest import FileEntry, Manifest, checksum
from penstock.state.store import StateStore
from penstock.state.tables import StateTables, select

V = 8
RUN, LATER_RUN = "run1", "run2"


def tables(rows: dict[int, str]) -> StateTables:
    """A table of texts by hash."""
    return {"rows": pa.table({"$hash": pa.array(rows.keys(), pa.int64()), "text": list(rows.values())})}


def texts(state: dict[str, StateTables], operator: str = "step") -> dict[int, str]:
    table = state.get(operator, {}).get("rows")
    if table is None:
        return {}
    return dict(zip(table["$hash"].to_pylist(), table["text"].to_pylist(), strict=True))


def written(
    store: StateStore, version: int, task: int, rows: dict[int, str], attempt: int = 0, run_id: str = RUN
) -> FileEntry:
    entry = store.write(version, task, attempt, run_id, {"step": tables(rows)}, V).entry
    assert entry is not None
    return entry


def commit(store: StateStore, version: int, *files: FileEntry, run_id: str = RUN) -> Manifest:
    manifest = Manifest(version, run_id, V, {"step": "a"}, {"watermark": version * 10}, files)
    store.commit(manifest)
    return manifest


def files_in(path: Path) -> list[str]:
    return sorted(name for _, _, names in os.walk(path) for name in names)


def test_what_was_committed_is_what_is_read(tmp_path: Path) -> None:
    store = StateStore(tmp_path / "state")
    assert store.latest() is None
    left, right = written(store, 1, 0, {0: "a", -7: "b", 5: "c"}), written(store, 1, 1, {2: "d"})
    assert (left.rows, left.partitions, right.partitions) == (3, (0, 1, 5), (2,))  # pmod, also of negatives
    manifest = commit(store, 1, left, right)
    other = StateStore(str(tmp_path / "state"))
    assert other.latest() == manifest == other.load(1)
    assert texts(other.read(1, ["step"], range(V))) == {0: "a", -7: "b", 5: "c", 2: "d"}
    assert texts(other.read(manifest, None, [1, 2])) == {-7: "b", 2: "d"}
    assert other.read(1, ["another"], range(V)) == {}
    assert FileEntry.from_json(left.to_json()) == left


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abc"), st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.text(max_size=3))
        ),
        max_size=4,
    ),
    st.sets(st.integers(0, V - 1)),
)
def test_any_partitions_of_any_operators_can_be_read_back(
    tasks: list[dict[str, dict[int, str]]], wanted: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        store = StateStore(root)
        entries, expected = [], {}
        for task, operators in enumerate(tasks):
            mine = [partition for partition in range(V) if partition % len(tasks) == task]
            state = {name: select(tables(rows), mine, V) for name, rows in operators.items() if rows}
            entries.append(store.write(1, task, 0, RUN, state, V).entry)
            for name, rows in operators.items():
                for key, text in rows.items():
                    if key % V in wanted and key % V in mine:
                        expected[name, key] = text
        manifest = Manifest(1, RUN, V, files=tuple(entry for entry in entries if entry is not None))
        store.commit(manifest)
        found = store.read(1, None, wanted)
        assert {(name, key): text for name in found for key, text in texts(found, name).items()} == expected


def test_a_task_writes_one_file_however_many_operators_and_partitions(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    state = {f"step{number}": tables({key: "x" for key in range(50)}) for number in range(20)}
    entry = store.write(3, 1, 7, RUN, state, V).entry
    assert entry is not None
    assert files_in(tmp_path) == [entry.file] == ["v000000000003-t00001-a7-run1.state"]
    assert store.write(3, 2, 8, RUN, {"step": {}}, V) == (None, None)
    assert files_in(tmp_path) == [entry.file]


def test_files_without_a_manifest_never_happened(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    commit(store, 1, written(store, 1, 0, {1: "old"}))
    written(store, 2, 0, {1: "new"})  # and the driver dies
    restarted = StateStore(tmp_path)
    latest = restarted.latest()
    assert latest is not None
    assert (latest.version, texts(restarted.read(latest, None, range(V)))) == (1, {1: "old"})


def test_half_written_files_are_never_looked_at(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    entry = written(store, 1, 0, {1: "old"})
    manifest = commit(store, 1, entry)
    whole = (tmp_path / "data" / entry.file).read_bytes()
    (tmp_path / "data" / f"tmp-ab12-{entry.file}").write_bytes(whole[:50])
    (tmp_path / "manifests" / "tmp-cd34-2.json").write_bytes(manifest.to_bytes()[:40])
    assert store.versions() == [1]
    assert texts(store.read(1, None, range(V))) == {1: "old"}


def test_a_crash_while_writing_leaves_the_version_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = StateStore(tmp_path)
    commit(store, 1, written(store, 1, 0, {1: "old"}))
    entry = written(store, 2, 0, {1: "new"})

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    for moment in ("fsync", "link"):
        with monkeypatch.context() as patched:
            patched.setattr(os, moment, crash)
            with pytest.raises(KeyboardInterrupt):
                commit(store, 2, entry)
        assert StateStore(tmp_path).versions() == [1]
    commit(store, 2, entry)
    assert texts(store.read(2, None, range(V))) == {1: "new"}


def test_of_two_attempts_the_one_that_the_manifest_names_counts(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    first = written(store, 1, 0, {1: "first"}, attempt=4)
    second = written(store, 1, 0, {1: "second"}, attempt=9)
    assert first.file != second.file
    commit(store, 1, second)
    late = written(store, 1, 0, {1: "late"}, attempt=11)  # a loser that was still alive at the commit
    assert texts(store.read(1, None, range(V))) == {1: "second"}
    with pytest.raises(StateError, match="two files of one task: version 1 has several of task 0"):
        commit(store, 1, second, late)


def test_a_version_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    store, other = StateStore(tmp_path), StateStore(tmp_path)
    before = commit(store, 2, written(store, 2, 0, {1: "x"}), written(store, 2, 1, {2: "y"}))
    replayed = written(other, 2, 0, {1: "z"}, run_id=LATER_RUN)
    with pytest.raises(
        StateError, match=r"^another run has taken over the checkpoint: .* is at version 2 of"
    ):
        commit(other, 2, replayed, run_id=LATER_RUN)
    assert StateStore(tmp_path).latest() == before
    assert texts(store.read(2, None, range(V))) == {1: "x", 2: "y"}
    assert len(files_in(tmp_path / "data")) == 3


def test_of_two_that_take_a_checkpoint_over_one_does(tmp_path: Path) -> None:
    first, second = StateStore(tmp_path), StateStore(tmp_path)
    commit(StateStore(tmp_path), 1, written(first, 1, 0, {1: "a"}))
    mine, other = first.latest(), second.latest()
    assert mine is not None
    assert other is not None
    first.commit(mine.taken_over(RUN, "process 1 on here"))
    told = r"at version 2 of process 1 on here, this run \(process 2 on there\) would have made version 2"
    with pytest.raises(StateError, match=told):
        second.commit(other.taken_over(LATER_RUN, "process 2 on there"))
    latest = StateStore(tmp_path).latest()
    assert latest is not None
    assert (latest.fence, latest.run_id, latest.files) == (1, RUN, mine.files)


def test_a_run_that_slept_through_a_take_over_and_many_versions_has_lost(tmp_path: Path) -> None:
    sleeper, awake = StateStore(tmp_path), StateStore(tmp_path)
    commit(sleeper, 1, written(sleeper, 1, 0, {1: "a"}))
    for version in range(2, 9):
        commit(awake, version, written(awake, version, 0, {1: "b"}))
    awake.collect()
    late = written(sleeper, 2, 0, {1: "late"}, run_id=LATER_RUN)
    with pytest.raises(StateError, match="another run has taken over the checkpoint"):
        commit(sleeper, 2, late, run_id=LATER_RUN)
    assert awake.versions() == [7, 8]  # of the number that was free again nothing is left


def test_a_run_whose_checkpoint_was_removed_does_not_make_another(tmp_path: Path) -> None:
    store = StateStore(tmp_path / "state")
    commit(store, 1, written(store, 1, 0, {1: "a"}))
    shutil.rmtree(tmp_path / "state")
    other = commit(StateStore(tmp_path / "state"), 0)
    with pytest.raises(StateError, match=r"^the checkpoint is gone: version 1 was removed from '"):
        store.commit(Manifest(2, RUN, V))
    assert StateStore(tmp_path / "state").latest() == other


@pytest.mark.parametrize("writers", [2, 12])
def test_of_any_number_of_writers_one_creates_a_file_and_all_see_it_whole(
    writers: int, tmp_path: Path
) -> None:
    begin = threading.Barrier(writers)

    def create(number: int) -> tuple[bool, bytes]:
        folder, data = Folder(tmp_path / "folder"), bytes([number]) * 100_000
        begin.wait()
        return folder.create("one", data), folder.read("one").to_pybytes()

    with ThreadPoolExecutor(writers) as pool:
        results = list(pool.map(create, range(writers)))
    (winner,) = [number for number, (created, _) in enumerate(results) if created]
    assert {data for _, data in results} == {bytes([winner]) * 100_000}
    assert files_in(tmp_path) == ["one"]


def test_a_batch_starts_from_the_newest_version_that_waits_for_it(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    for version, batches in enumerate((0, 0, 1, 2, 2)):
        store.commit(Manifest(version, RUN, V, batches=batches))
    assert [store.before(batch).version for batch in (0, 1, 2)] == [1, 2, 4]
    with pytest.raises(StateError, match="batch 3 starts from no version"):
        store.before(3)


def test_a_damaged_manifest_is_an_error_not_an_older_version(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    commit(store, 1, written(store, 1, 0, {1: "a"}))
    whole = commit(store, 2, written(store, 2, 0, {1: "b"})).to_bytes()
    path = tmp_path / "manifests" / "2.json"
    changed = whole.replace(b'"watermark":20', b'"watermark":21')
    for damaged in (b"", whole[:100], changed, b"[]", b"{}"):
        path.write_bytes(damaged)
        with pytest.raises(StateError, match=r"unreadable checkpoint: manifest 2.json in .*; it was damaged"):
            store.latest()
        assert store.collect(1) == []  # nothing is removed as long as it cannot be read
    assert texts(store.read(1, None, range(V))) == {1: "a"}
    path.unlink()
    latest = store.latest()
    assert latest is not None
    assert latest.version == 1
    (tmp_path / "manifests" / "3.json").write_bytes(latest.to_bytes())
    with pytest.raises(StateError, match="is of version 1"):
        store.latest()


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    entry, other = written(store, 1, 0, {0: "a"}), written(store, 1, 1, {1: "b"})
    commit(store, 1, entry, other)
    path = tmp_path / "data" / entry.file
    whole = path.read_bytes()
    for damaged, said in (
        (whole[:-1] + b"?", "has checksum"),
        (whole[:-1], f"bytes, written were {len(whole)}"),
        (b"", "has 0 bytes"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(StateError, match=f"damaged checkpoint file: {entry.file} of version 1 .*{said}"):
            store.read(1, None, [0])
    path.unlink()
    with pytest.raises(StateError, match=f"checkpoint file is missing: {entry.file} of version 1"):
        store.read(1, None, [0])
    assert texts(store.read(1, None, [1])) == {1: "b"}  # what is not needed is not opened
    with pytest.raises(StateError, match=r"no such checkpoint: version 4 in .*; versions there: 1"):
        store.load(4)


def test_other_formats_are_refused(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    entry = written(store, 1, 0, {1: "a"})
    manifest = commit(store, 1, entry)
    store.commit(replace(manifest, version=2, format=99))
    with pytest.raises(StateError, match=r"unknown checkpoint format: manifest 2.json .* has format 99"):
        store.latest()
    whole = (tmp_path / "data" / entry.file).read_bytes()
    later = whole[:-16] + (99).to_bytes(8, "little") + whole[-8:]
    for version, data, said in (
        (3, b"ARROW1 of the first format", "'none'"),
        (4, b"", "'none'"),
        (5, later, "99"),
    ):
        name = f"v{version:012d}-t00000-a0-x.state"
        (tmp_path / "data" / name).write_bytes(data)
        commit(store, version, FileEntry(0, name, 1, len(data), checksum(data), (1,)))
        with pytest.raises(StateError, match=rf"unknown checkpoint format: file {name} has format {said}"):
            store.read(version, None, [1])
    old = manifest.to_bytes().replace(b'"format":4', b'"format":3')
    body = old.partition(b'"manifest": ')[2].removesuffix(b"}\n")
    sealed = old.replace(
        checksum(manifest.to_bytes().partition(b'"manifest": ')[2][:-2]).encode(), checksum(body).encode()
    )
    (tmp_path / "manifests" / "1.json").write_bytes(sealed)
    with pytest.raises(
        StateError, match=r"unknown checkpoint format: manifest 1.json .* has format 3, .* reads 4"
    ):
        store.load(1)


def test_a_partition_in_two_files_is_refused(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    commit(store, 1, written(store, 1, 0, {1: "a"}), written(store, 1, 1, {9: "b"}))
    with pytest.raises(StateError, match=r"partition 1 of 'step' in .*t00000.* and in .*t00001"):
        store.read(1, None, range(V))


def test_old_versions_and_orphans_are_collected_but_nothing_that_may_be_needed(tmp_path: Path) -> None:
    store = StateStore(tmp_path)
    assert store.collect() == []
    kept = {}
    for version in range(1, 6):
        kept[version] = written(store, version, 0, {1: str(version)})
        written(store, version, 0, {1: "orphan"}, attempt=5)
        commit(store, version, kept[min(version, 2)])
    carried = commit(store, 6, kept[2])  # a version may name a file of an older one
    in_flight = written(store, 7, 0, {1: "next"})
    (tmp_path / "data" / f"tmp-00ff-{kept[3].file}").write_bytes(b"half")
    (tmp_path / "data" / f"tmp-00ff-{in_flight.file}").write_bytes(b"half")
    (tmp_path / "data" / "notes.txt").write_text("not ours")
    store.collect(keep_versions=2, grace_versions=2)
    assert store.versions() == [5, 6]
    left = files_in(tmp_path / "data")
    assert left == sorted(
        [
            "notes.txt",
            kept[2].file,
            kept[5].file,
            kept[5].file.replace("-a0-", "-a5-"),  # within the grace
            in_flight.file,
            f"tmp-00ff-{in_flight.file}",
        ]
    )
    assert texts(store.read(carried, None, range(V))) == {1: "2"}
    assert store.collect(keep_versions=2, grace_versions=2) == []


def test_a_manifest_says_which_operators_match_and_which_do_not() -> None:
    manifest = Manifest(1, RUN, V, {"a": "sum x", "b": "sum y", "gone": "z"})
    assert manifest.missing({"a": "sum x", "b": "sum z", "c": "count"}) == {
        "b": "it computes something else now",
        "c": "it is new",
    }
    assert manifest.left_behind(["a", "b"]) == ["gone"]
    assert json.loads(manifest.to_bytes())["manifest"]["format"] == 4


def test_a_manifest_comes_back_as_it_was_written() -> None:
    manifest = Manifest(
        7,
        RUN,
        V,
        {"a": "sum x"},
        {"watermark": 3},
        fence=2,
        process="process 12 on host",
        logs={"offsets": "v1\n{}\n-"},
        deliveries={"query": {"path": "/out", "bytes": 12}},
    )
    assert Manifest.from_bytes(manifest.to_bytes(), "7.json") == manifest


def test_uris_work_like_paths(tmp_path: Path) -> None:
    store = StateStore(f"file://{tmp_path}/deep/state")
    commit(store, 1, written(store, 1, 0, {1: "a"}))
    assert texts(StateStore(tmp_path / "deep" / "state").read(1, None, [1])) == {1: "a"}


def test_file_systems_that_are_not_local(tmp_path: Path) -> None:
    # A sub-tree is a file system of another kind: it goes the way that object stores go.
    tree = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    with pytest.raises(StateError, match=r"^this checkpoint cannot keep two runs apart: where 'state/manif"):
        commit(StateStore("state", tree), 1)
    assert not files_in(tmp_path)
    store = StateStore("state", tree, create=unfenced)
    for version, text in enumerate(("first", "again"), 1):
        commit(store, version, written(store, version, 0, {1: text}, run_id=text))
    assert texts(store.read(2, None, range(V))) == {1: "again"}
    with pytest.raises(StateError, match="another run has taken over"):
        commit(store, 2, run_id=LATER_RUN)
    with pytest.raises(StateError, match="no such checkpoint"):
        store.load(3)
    assert store.collect() == []
    assert not [name for name in files_in(tmp_path) if name.startswith("tmp-")]
