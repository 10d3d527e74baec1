"""Power cuts without a cut: what was synced is recorded, and an image is built that holds nothing else.

A file has the content of its last fsync, a folder the names of its last fsync. A name whose file was never
synced stands for an empty file; what a JVM wrote, which syncs nothing, is gone with the names of its folders.

Also a hook of every Python process of a recorded run, so it must load alone, with the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import shutil
import stat
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

_ROOT, _JOURNAL = "PENSTOCK_POWER_ROOT", "PENSTOCK_POWER_JOURNAL"
_SITE = "site"  # in the journal's folder: what Python loads at its start

# Of statx(2), which tells when an inode was made: its number is taken again when the file is gone.
_AT_FDCWD, _AT_EMPTY_PATH, _AT_SYMLINK_NOFOLLOW = -100, 0x1000, 0x100
_STATX_BASIC_STATS, _STATX_BTIME = 0x7FF, 0x800
_MODE_AT, _INODE_AT, _BORN_AT, _DEVICE_AT = 28, 32, 80, 136

_real = {name: getattr(os, name) for name in ("fsync", "fdatasync")}


class Inode(NamedTuple):
    """A file or folder, whatever its name is now."""

    id: str
    is_folder: bool


@dataclass
class _Synced:
    """What is on disk: of files a copy, of folders the names."""

    contents: dict[str, Path] = field(default_factory=dict)
    names: dict[str, dict[str, Inode]] = field(default_factory=dict)


class PowerRecorder:
    """Records what is synced below ``root``; ``journal`` is a folder elsewhere, of its own.

    >>> recorder = PowerRecorder(Path("run"), Path("journal"))  # doctest: +SKIP
    >>> recorder.begin()  # what is there now is on disk
    >>> subprocess.run([...], env=recorder.environment(os.environ))  # and is killed
    >>> recorder.cut()  # the folder then has what a power cut would have left
    """

    def __init__(self, root: Path, journal: Path) -> None:
        self.root, self.journal = root.resolve(), journal.resolve()

    def begin(self) -> None:
        """Everything below the root counts as synced; what was recorded before is forgotten."""
        self.journal.mkdir(parents=True, exist_ok=True)
        for entry in self.journal.iterdir():
            if entry.name == _SITE:  # of processes that are yet to start
                continue
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        records = _Records(self.root, self.journal)
        for folder, _, files in os.walk(self.root):
            for name in files:
                records.note(os.path.join(folder, name), 0)
            records.note(folder, 0)

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of Python processes that are recorded, and of those that they start."""
        from lab.bench.faults.hooks import hooked

        armed = hooked(environment, self.journal / _SITE, __file__)
        return {**armed, _ROOT: str(self.root), _JOURNAL: str(self.journal)}

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """Records what this process syncs."""
        _install(_Records(self.root, self.journal))
        try:
            yield
        finally:
            for name, function in _real.items():
                setattr(os, name, function)

    def image(self, target: Path, choose: random.Random | None = None) -> None:
        """Builds in an empty folder what a power cut leaves now; nobody may write below the root meanwhile.

        With ``choose`` chance decides, folder by folder and file by file, whether something that was not
        synced is on disk all the same, as a file system may have it: names of now, and contents whole or in
        part.
        """
        _Image(self._synced(), self.root, choose).build(target)

    def cut(self, choose: random.Random | None = None) -> None:
        """Leaves below the root what a power cut would leave, and goes on from there."""
        image = self.journal / "image"
        self.image(image, choose)
        for entry in list(os.scandir(self.root)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        shutil.copytree(image, self.root, dirs_exist_ok=True)
        self.begin()

    def _synced(self) -> _Synced:
        records = []
        for file in self.journal.glob("*.jsonl"):
            for line in file.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # else the process was killed before it could say that it had synced
                    records.append(json.loads(line))
        synced = _Synced()
        for record in sorted(records, key=lambda record: int(record["at"])):
            if "copy" in record:
                synced.contents[record["inode"]] = self.journal / record["copy"]
            else:
                synced.names[record["inode"]] = {
                    name: Inode(*inode) for name, inode in record["names"].items()
                }
        return synced


class _Records:
    """What one process has synced: a line each, in a file of its own."""

    def __init__(self, root: Path, journal: Path) -> None:
        self._root, self._journal = str(root), journal
        self._lock = threading.Lock()
        self._pid, self._file = 0, -1

    def synced(self, descriptor: int, at: int) -> None:
        """Notes what a descriptor stands for, if it is below the root."""
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        if name == self._root or name.startswith(self._root + "/"):
            self.note(f"/proc/self/fd/{descriptor}", at)

    def note(self, path: str, at: int) -> None:
        """Notes what a path leads to as it is now, synced no earlier than ``at``."""
        with open_any(path) as descriptor:
            inode = _inode(descriptor, "")
            if inode.is_folder:
                self._write({"at": at, "inode": inode.id, "names": _names(f"/proc/self/fd/{descriptor}")})
                return
            copy = uuid.uuid4().hex
            with open(descriptor, "rb", closefd=False) as source, open(self._journal / copy, "wb") as target:
                shutil.copyfileobj(source, target)
        self._write({"at": at, "inode": inode.id, "copy": copy})

    def _write(self, record: dict[str, Any]) -> None:
        with self._lock:
            if self._pid != os.getpid():  # a daemon's children are processes of their own
                name = f"{os.getpid()}-{uuid.uuid4().hex}.jsonl"
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                self._pid, self._file = os.getpid(), os.open(self._journal / name, flags, 0o600)
            os.write(self._file, json.dumps(record).encode() + b"\n")


class _Image:
    """What is on disk, as a tree of files."""

    def __init__(self, synced: _Synced, root: Path, choose: random.Random | None) -> None:
        self._synced, self._root, self._choose = synced, root, choose
        self._now: dict[str, str] = {}  # only chance needs it
        if choose is not None:
            for folder, _, files in os.walk(root):
                for path in [folder, *(os.path.join(folder, name) for name in files)]:
                    self._now[_inode(_AT_FDCWD, path).id] = path

    def build(self, target: Path) -> None:
        self._folder(_inode(_AT_FDCWD, str(self._root)), target)

    def _folder(self, inode: Inode, target: Path) -> None:
        target.mkdir()
        names = self._synced.names.get(inode.id, {})
        if self._choose is not None and inode.id in self._now and self._choose.random() < 0.5:
            names = {name: Inode(*one) for name, one in _names(self._now[inode.id]).items()}
        for name, child in sorted(names.items()):
            if child.is_folder:
                self._folder(child, target / name)
            else:
                (target / name).write_bytes(self._content(child))

    def _content(self, inode: Inode) -> bytes:
        copy = self._synced.contents.get(inode.id)
        if copy is not None:
            return copy.read_bytes()
        if self._choose is None or inode.id not in self._now:
            return b""
        whole = Path(self._now[inode.id]).read_bytes()
        return whole[: self._choose.choice((0, len(whole) // 2, len(whole)))]


def arm() -> None:
    """Records this process, if it is started by a run that is recorded."""
    if _JOURNAL in os.environ:
        _install(_Records(Path(os.environ[_ROOT]), Path(os.environ[_JOURNAL])))


def _install(records: _Records) -> None:
    def recorded(function: Callable[[int], None]) -> Callable[[Any], None]:
        def synced(file: Any) -> None:
            descriptor = file if isinstance(file, int) else file.fileno()
            at = time.monotonic_ns()  # whoever syncs the same later has at least what this one has
            function(descriptor)
            records.synced(descriptor, at)

        return synced

    for name, function in _real.items():
        setattr(os, name, recorded(function))


@contextlib.contextmanager
def open_any(path: str) -> Iterator[int]:
    """A file or folder, open for reading."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _names(folder: str) -> dict[str, Inode]:
    """What is in a folder; links to elsewhere are left out."""
    names = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # gone since
                if not entry.is_symlink():
                    names[entry.name] = _inode(_AT_FDCWD, entry.path)
    return names


def _inode(descriptor: int, path: str) -> Inode:
    buffer = ctypes.create_string_buffer(256)
    flags = _AT_SYMLINK_NOFOLLOW if path else _AT_EMPTY_PATH
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.statx(descriptor, os.fsencode(path), flags, _STATX_BASIC_STATS | _STATX_BTIME, buffer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    (mode,) = struct.unpack_from("H", buffer, _MODE_AT)
    (number,) = struct.unpack_from("Q", buffer, _INODE_AT)
    born_s, born_ns = struct.unpack_from("qI", buffer, _BORN_AT)
    major, minor = struct.unpack_from("II", buffer, _DEVICE_AT)
    return Inode(f"{major}:{minor}:{number}:{born_s}.{born_ns}", stat.S_ISDIR(mode))
