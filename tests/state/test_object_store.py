"""Checkpoints in an object store: a manifest is created once, by whoever is first."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from lab.brokers.objects import ObjectStore
from penstock.checkpoints.fencing import creation
from penstock.state.errors import StateError
from penstock.state.files import Folder
from penstock.state.manifest import Manifest
from penstock.state.store import StateStore


@pytest.fixture
def address(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in objects.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{objects.bucket}/{uuid4().hex}"


def test_a_file_is_created_once(address: str) -> None:
    create = creation(address, allow_unfenced=False)
    assert create is not None
    folder = Folder(f"{address}/deep/manifests", create=create)
    assert folder.create("1.json", b"first")
    assert not folder.create("1.json", b"second")
    assert folder.create("2.json", b"third")
    assert {name: bytes(folder.read(name)) for name in folder.names()} == {
        "1.json": b"first",
        "2.json": b"third",
    }


def test_a_writer_whose_answer_got_lost_is_the_first_still(address: str) -> None:
    folder = Folder(address, create=creation(address, allow_unfenced=False))
    assert folder.create("1.json", b"mine")
    assert folder.create("1.json", b"mine")


def test_of_two_runs_one_loses_the_checkpoint(address: str) -> None:
    def store() -> StateStore:
        return StateStore(f"{address}/state", create=creation(address, allow_unfenced=False))

    def version(number: int, run: str) -> Manifest:
        return Manifest(number, run, virtual_partitions=4, process=run)

    first, second = store(), store()
    first.commit(version(1, "first"))
    assert second.latest() == version(1, "first")
    second.commit(version(2, "second"))
    with pytest.raises(StateError, match=r"another run has taken over .* version 2 of second"):
        first.commit(version(2, "first"))
    assert store().latest() == version(2, "second")


def test_a_missing_bucket_is_no_lost_race(address: str) -> None:
    elsewhere = f"s3://not-there/{Path(address).name}"
    create = creation(elsewhere, allow_unfenced=False)
    assert create is not None
    with pytest.raises(Exception, match="NoSuchBucket"):
        create(Folder(address), "1.json", b"x")
