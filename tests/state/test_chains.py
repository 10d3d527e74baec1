"""Chains of files under damage, crashes, races and collecting: as safe as a version that is one file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.state.errors import StateError
from penstock.state.manifest import FileEntry, Manifest
from penstock.state.store import StateStore, Written
from penstock.state.tables import StateTables

V = 8
RUN = "run1"
KEYS = 2_000


def state(version: int) -> dict[str, StateTables]:
    """The same keys in every version, of which a few have its number."""
    keys = np.arange(KEYS)
    return {"step": {"rows": pa.table({"$hash": keys, "value": np.where(keys % 100 == 0, version, 0)})}}


def values(store: StateStore, version: int) -> set[int]:
    rows = store.read(version, None, range(V))["step"]["rows"]
    assert rows.num_rows == KEYS
    return set(rows["value"].to_pylist())


def committed(store: StateStore, versions: int) -> list[Written]:
    """Versions 1, 2, ... of one task, each built on the one before."""
    found: list[Written] = []
    for version in range(1, versions + 1):
        base = found[-1].base if found else None
        found.append(store.write(version, 0, version, RUN, state(version), V, base))
        commit(store, version, found[-1].entry)
    return found


def commit(store: StateStore, version: int, *entries: FileEntry | None) -> None:
    store.commit(Manifest(version, RUN, V, files=tuple(entry for entry in entries if entry is not None)))


def entry_of(written: Written) -> FileEntry:
    assert written.entry is not None
    return written.entry


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    return StateStore(tmp_path, chain_limit=4, small_bytes=0)


def test_every_file_of_a_chain_is_checked(store: StateStore, tmp_path: Path) -> None:
    last = entry_of(committed(store, 4)[-1])
    assert len(last.links) == 4
    assert values(store, 4) == {0, 4}
    for link in last.links:
        path = tmp_path / "data" / link.file
        whole = path.read_bytes()
        for damaged, said in (
            (whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], "has checksum"),
            (whole[:-1], f"has {len(whole) - 1} bytes, written were {len(whole)}"),
        ):
            path.write_bytes(damaged)
            with pytest.raises(
                StateError, match=f"damaged checkpoint file: {link.file} of version 4 .*{said}"
            ):
                store.read(4, None, [0])
        path.unlink()
        with pytest.raises(StateError, match=f"checkpoint file is missing: {link.file} of version 4"):
            store.read(4, None, [0])
        path.write_bytes(whole)
    assert values(store, 4) == {0, 4}


def test_files_that_do_not_belong_together_are_refused(store: StateStore) -> None:
    written = [entry_of(each) for each in committed(store, 3)]
    manifest = store.load(3)
    for chain in ((), written[2].chain[:1], written[2].chain[1:], (*written[2].chain, written[1].link)):
        mixed = replace(manifest, files=(replace(written[2], chain=chain),))
        with pytest.raises(StateError, match=f"inconsistent checkpoint: file {written[2].file}"):
            store.read(mixed, None, range(V))


def test_a_file_stays_as_long_as_a_kept_version_builds_on_it(store: StateStore, tmp_path: Path) -> None:
    base = None
    for version in range(1, 30):
        entry, base = store.write(version, 0, version, RUN, state(version), V, base)
        orphan, _ = store.write(version, 0, 1_000 + version, RUN, state(0), V, base)
        assert orphan is not None
        commit(store, version, entry)
        store.collect(keep_versions=2, grace_versions=1)
        kept = store.versions()
        assert kept == list(range(max(1, version - 1), version + 1))
        for each in kept:
            assert values(store, each) == {0, each}
        needed = set().union(*(store.load(each).file_names for each in kept))
        assert {path.name for path in (tmp_path / "data").iterdir()} == needed | {orphan.file}
        assert len(needed) <= 7


def test_collecting_while_the_next_version_is_being_written(store: StateStore) -> None:
    written = committed(store, 3)
    entry, _ = store.write(4, 0, 4, RUN, state(4), V, written[-1].base)  # its manifest is still to come
    store.collect(keep_versions=1, grace_versions=1)
    commit(store, 4, entry)
    store.collect(keep_versions=1, grace_versions=1)
    assert values(store, 4) == {0, 4}


def test_a_delta_on_what_was_never_committed_is_refused(store: StateStore, tmp_path: Path) -> None:
    written = committed(store, 2)
    loser = store.write(3, 0, 77, RUN, state(3), V, written[-1].base)
    winner = store.write(3, 0, 78, RUN, state(3), V, written[-1].base)
    commit(store, 3, winner.entry)
    assert winner.base is not None
    assert loser.base is not None
    assert winner.base.is_in(store.load(3))
    assert not loser.base.is_in(store.load(3))
    entry, _ = store.write(4, 0, 79, RUN, state(4), V, loser.base)
    said = (
        f"the one before it does not have: version 4 needs {entry_of(loser).file}; give `write` a base only"
    )
    for opened in (store, StateStore(tmp_path)):
        with pytest.raises(StateError, match=said):
            commit(opened, 4, entry)
    with pytest.raises(StateError, match=said):
        commit(store, 4, store.write(4, 0, 81, RUN, state(3), V, loser.base).entry)  # it had nothing to write
    assert store.versions() == [1, 2, 3]
    good, _ = store.write(4, 0, 80, RUN, state(4), V, winner.base)
    commit(StateStore(tmp_path), 4, good)
    assert values(store, 4) == {0, 4}


def test_a_task_that_is_tried_again_uses_its_base_again(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = committed(store, 2)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    for moment in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, moment, crash)
            with pytest.raises(KeyboardInterrupt):
                store.write(3, 0, 5, RUN, state(3), V, written[-1].base)
    first = store.write(3, 0, 6, RUN, state(3), V, written[-1].base)
    again = store.write(3, 0, 7, RUN, state(3), V, written[-1].base)
    assert entry_of(first).checksum == entry_of(again).checksum
    commit(store, 3, again.entry)
    assert values(store, 3) == {0, 3}


def test_a_replayed_version_may_be_a_snapshot_where_the_first_was_a_delta(store: StateStore) -> None:
    written = committed(store, 2)
    store.write(3, 0, 5, RUN, state(3), V, written[-1].base)  # and the driver dies
    replayed = store.write(3, 0, 9, "run2", state(3), V)  # a new driver: nobody has a base
    commit(store, 3, replayed.entry)
    assert values(store, 3) == {0, 3}
    entry, _ = store.write(4, 0, 10, "run2", state(4), V, replayed.base)
    commit(store, 4, entry)
    store.collect(keep_versions=1)
    assert values(store, 4) == {0, 4}
    assert entry_of(written[-1]).file not in store.load(4).file_names


def test_several_tasks_each_with_a_chain(store: StateStore) -> None:
    bases = [None, None]
    for version in range(1, 5):
        entries = []
        for task in (0, 1):
            keys = np.arange(KEYS) * 2 + task
            rows = pa.table({"$hash": keys, "value": np.where(keys % 100 == 0, version, 0)})
            entry, bases[task] = store.write(version, task, 0, RUN, {"step": {"rows": rows}}, V, bases[task])
            entries.append(entry)
        commit(store, version, *entries)
    assert store.read(4, None, range(V))["step"]["rows"].num_rows == 2 * KEYS
    assert store.read(4, ["step"], [1])["step"]["rows"].num_rows == 2 * KEYS // V
    assert store.read(4, ["other"], range(V)) == {}


def test_a_state_that_vanishes_and_comes_back(store: StateStore) -> None:
    whole = state(1) | {"other": {"rows": pa.table({"$hash": [1, 9], "text": ["a", "b"]})}}
    base = None
    expected = []
    for version, now in enumerate([whole, state(2), whole, {}, whole, {"other": whole["other"]}, whole], 1):
        entry, base = store.write(version, 0, 0, RUN, now, V, base)
        commit(store, version, entry)
        expected.append({name: tables["rows"].num_rows for name, tables in now.items()})
        found = store.read(version, None, range(V))
        assert {name: tables["rows"].num_rows for name, tables in found.items()} == expected[-1]
