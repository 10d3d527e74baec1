"""Compiled kernels on disk: only what this user wrote is loaded, and the folder does not grow for ever."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.compiled.folder import KernelCacheError, KernelFolder, chosen_limit_bytes

_MB = 1 << 20
_ROOT = Path(__file__).parent.parent.parent
_SCRIPT = """
import logging

import numba
from penstock.compiled import cache
from penstock.query.errors import PenstockError
signature = numba.types.int64(numba.types.int64)
logging.disable()  # a busy machine takes long to compile, and says so
try:
    kernel = cache.compile_kernel("twice", "def twice(x):\\n    return 2 * x\\n", signature)
    print(kernel(21), cache.counts.compiled, cache.counts.loaded)
except PenstockError as error:
    print(error)
"""


class Intruder:
    """Unpickling it runs code."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("an intruder's code runs",)


def run(cache: Path) -> str:
    """What a process says that needs one kernel."""
    environment = {**os.environ, "PENSTOCK_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=_ROOT,
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_what_others_could_write_into_the_folder_is_not_run(tmp_path: Path) -> None:
    assert run(tmp_path) == "42 1 0"
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"]
    for file in files:
        if file.suffix == ".py":
            file.write_text(file.read_text() + 'print("an intruder\'s code runs")\n')
        elif file.suffix == ".kernel":
            folder_key_and_data = file.read_bytes()[:50]
            file.write_bytes(folder_key_and_data + pickle.dumps(Intruder()))
        else:
            file.write_bytes(pickle.dumps(Intruder()))
        file.chmod(0o666)
    assert files
    assert run(tmp_path) == "42 1 0"
    assert run(tmp_path) == "42 0 1"


def test_a_file_that_others_may_write_counts_as_not_there(tmp_path: Path) -> None:
    folder = KernelFolder(tmp_path / "kernels", _MB)
    folder.write("key", b"data")
    (file,) = (tmp_path / "kernels").glob("*.kernel")
    assert folder.read("key") == b"data"
    file.chmod(0o620)
    assert folder.read("key") is None
    folder.write("key", b"data")
    assert folder.read("key") == b"data"


def test_a_file_belongs_to_its_key_and_is_whole(tmp_path: Path) -> None:
    folder = KernelFolder(tmp_path / "kernels", _MB)
    folder.write("key", b"data")
    (file,) = (tmp_path / "kernels").glob("*.kernel")
    whole = file.read_bytes()
    folder.write("other", b"data")
    (other,) = set((tmp_path / "kernels").glob("*.kernel")) - {file}
    other.write_bytes(whole)
    assert folder.read("other") is None
    for damaged in (whole[:-1], whole[:20], b"", whole + b"x"):
        file.write_bytes(damaged)
        assert folder.read("key") is None


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    folder = KernelFolder(tmp_path / "kernels", _MB)
    folder.write("key", b"data")
    (file,) = (tmp_path / "kernels").glob("*.kernel")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert folder.read("key") is None


def test_a_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / f"user-{os.geteuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    told = run(tmp_path)
    assert told == (
        "the folder for compiled kernels is not safe: what lies in it is run: "
        f"'{folder}' can be written by other users; remove it, or: chmod go-w '{folder}'"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / f"user-{os.geteuid()}"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    assert f"'{folder}' belongs to user 65534; set PENSTOCK_CACHE to a folder of yours" in run(tmp_path)


def test_another_folder_in_its_place_is_not_looked_at(tmp_path: Path) -> None:
    folder = KernelFolder(tmp_path / "kernels", _MB)
    folder.write("key", b"data")
    (tmp_path / "kernels").rename(tmp_path / "away")
    other = KernelFolder(tmp_path / "kernels", _MB)
    other.write("key", b"an intruder's")
    assert folder.read("key") == b"data"


def test_a_cache_that_cannot_be_made_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "cache" / f"user-{os.geteuid()}"
    assert run(tmp_path / "file" / "cache") == (
        f"the folder for compiled kernels cannot be made or opened: '{path}': Not a directory; "
        "set PENSTOCK_CACHE to a folder of yours"
    )


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kernels").symlink_to(tmp_path)
    with pytest.raises(KernelCacheError, match=r"cannot be made or opened: .*; set PENSTOCK_CACHE"):
        KernelFolder(tmp_path / "kernels", _MB)


def test_above_the_limit_the_least_used_go(tmp_path: Path) -> None:
    folder = KernelFolder(tmp_path / "kernels", 350_000)
    paths = {}
    for key in ("old", "used", "newer"):
        before = set((tmp_path / "kernels").iterdir())
        folder.write(key, bytes(100_000))
        (paths[key],) = {path for path in set((tmp_path / "kernels").iterdir()) - before if path.suffix}
        os.utime(paths[key], (1_000 + len(paths), 1_000 + len(paths)))
    folder.read("old")  # is now the one that was used last
    another = KernelFolder(tmp_path / "kernels", 350_000)
    another.write("newest", bytes(100_000))
    assert [key for key in ("old", "used", "newer", "newest") if folder.read(key)] == [
        "old",
        "newer",
        "newest",
    ]


def test_what_a_killed_process_left_goes_too(tmp_path: Path) -> None:
    folder = KernelFolder(tmp_path / "kernels", 150_000)
    left = tmp_path / "kernels" / "0.tmp"
    left.write_bytes(bytes(100_000))
    os.utime(left, (1, 1))
    folder.write("key", bytes(100_000))
    assert not left.exists()
    assert folder.read("key") is not None


def test_a_folder_that_is_gone_keeps_nothing_and_says_nothing(tmp_path: Path) -> None:
    folder = KernelFolder(tmp_path / "kernels", _MB)
    (tmp_path / "kernels").rmdir()
    folder.write("key", b"data")
    assert folder.read("key") is None


@pytest.mark.parametrize("text", ["much", "-1", "0", "1.5"])
def test_a_limit_that_is_no_size_is_said_plainly(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE_MB", text)
    with pytest.raises(KernelCacheError, match=f"PENSTOCK_CACHE_MB must be .*: got '{text}'; write e.g. 512"):
        chosen_limit_bytes()
