"""What a source hands to other processes beside the checkpoint is what they load, or they load nothing."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from penstock.connectors.shipping import LARGE_BYTES, StoredObject
from penstock.query.errors import RunError


class _Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> object:
        return os.mkdir, (str(self.mark),)


def test_a_large_object_is_loaded_from_its_file(tmp_path: Path) -> None:
    value = b"x" * LARGE_BYTES
    stored = StoredObject.of(value, str(tmp_path))
    assert stored is not None
    assert stored.data is None
    assert pickle.loads(pickle.dumps(stored)).value == value


def test_a_file_that_was_changed_is_not_unpickled(tmp_path: Path) -> None:
    stored = StoredObject.of(b"y" * LARGE_BYTES, str(tmp_path))
    assert stored is not None
    (tmp_path / stored.name).write_bytes(pickle.dumps(_Evil(tmp_path / "evil")))
    with pytest.raises(RunError, match=r"^a source's data was changed: 'source-.*' is not what was written"):
        _ = stored.value
    assert not (tmp_path / "evil").exists()
