"""The folder of compiled kernels: loading one runs it, so only what this user wrote is ever read.

The folder is opened once and checked once, and everything in it is reached through that handle. So whoever
may rename the folders above it cannot put another in its place.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

from penstock.query.errors import PenstockError

VARIABLE = "PENSTOCK_CACHE"
LIMIT_VARIABLE = "PENSTOCK_CACHE_MB"
DEFAULT_LIMIT_MB = 512
_ENDING = ".kernel"
_TEMPORARY = ".tmp"
_LOCK = "lock"
_MAGIC = b"penstock kernel 1\n"
_HEAD_BYTES = len(_MAGIC) + 2 * 32
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOM_AFTER_REMOVAL = 0.9  # so that not every kernel that is added removes one


class KernelCacheError(PenstockError):
    """Kernels cannot be kept where they should be. Says what happened, the detail, and a hint."""

    def __init__(self, what: str, *, detail: str, hint: str) -> None:
        self.what, self.detail, self.hint = what, detail, hint
        super().__init__(f"{what}: {detail}; {hint}")


class KernelFolder:
    """Compiled kernels in files, each named by all that its code depends on.

    Any number of processes share it: files appear whole, never change, and may go at any time. What cannot be
    read, is damaged or may be written by others counts as not there. Above ``limit_bytes`` the kernels that
    were not used for the longest time go. Everything must belong to ``owner``, by default to this user.
    """

    def __init__(self, path: Path, limit_bytes: int, owner: int | None = None) -> None:
        self.path = path
        self._limit_bytes = limit_bytes
        self._owner = os.geteuid() if owner is None else owner
        self._handle = _opened(path, self._owner)

    def read(self, key: str) -> bytes | None:
        """What was kept for a key, None if there is nothing that can be trusted. Marks it as used."""
        try:
            descriptor = os.open(_name(key), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._handle)
        except OSError:
            return None
        with open(descriptor, "rb") as file:
            if not _is_safe(os.fstat(descriptor), stat.S_ISREG, self._owner):
                return None
            found = file.read()
            head, data = found[:_HEAD_BYTES], found[_HEAD_BYTES:]
            if head != _head(key, data):
                return None
            with contextlib.suppress(OSError):
                os.utime(descriptor)
        return data

    def write(self, key: str, data: bytes) -> None:
        """Keeps something for a key. A full disk is no error: the kernel is compiled anew next time."""
        temporary = f"{uuid4().hex}{_TEMPORARY}"
        with contextlib.suppress(OSError):
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                with open(os.open(temporary, flags, 0o600, dir_fd=self._handle), "wb") as file:
                    file.write(_head(key, data))
                    file.write(data)
                os.replace(temporary, _name(key), src_dir_fd=self._handle, dst_dir_fd=self._handle)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=self._handle)
                raise
            self._remove_least_used()

    def _remove_least_used(self) -> None:
        with self._alone() as is_alone:
            if not is_alone:
                return  # another process is at it
            files = self._files()
            size = sum(status.st_size for _, status in files)
            if size <= self._limit_bytes:
                return
            for name, status in sorted(files, key=lambda file: file[1].st_mtime_ns):
                if size <= self._limit_bytes * _ROOM_AFTER_REMOVAL:
                    return
                os.unlink(name, dir_fd=self._handle)  # whoever has it open reads on
                size -= status.st_size

    def _files(self) -> list[tuple[str, os.stat_result]]:
        """The kernels, and what killed processes left half-written."""
        files = []
        with os.scandir(self._handle) as entries:
            for entry in entries:
                if entry.name.endswith((_ENDING, _TEMPORARY)):
                    with contextlib.suppress(FileNotFoundError):  # another process has finished writing it
                        files.append((entry.name, entry.stat(follow_symlinks=False)))
        return files

    @contextlib.contextmanager
    def _alone(self) -> Iterator[bool]:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(_LOCK, flags, 0o600, dir_fd=self._handle)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
        except BlockingIOError:
            yield False
        finally:
            os.close(descriptor)


def chosen_root() -> Path:
    """The folder that the user named, or the usual one."""
    base = os.environ.get(VARIABLE)
    return Path(base).absolute() if base else Path("~/.cache/penstock/kernels").expanduser()


def chosen_limit_bytes() -> int:
    """How large the folder may become."""
    text = os.environ.get(LIMIT_VARIABLE) or str(DEFAULT_LIMIT_MB)
    if not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise KernelCacheError(
            f"{LIMIT_VARIABLE} must be a whole number of megabytes",
            detail=f"got '{text}'",
            hint=f"write e.g. {DEFAULT_LIMIT_MB}",
        )
    return int(text) << 20


def _opened(path: Path, owner: int) -> int:
    """The folder's handle. It is made for its owner alone if it is not there."""
    hint = f"set {VARIABLE} to a folder of yours"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.mkdir(exist_ok=True, mode=0o700)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path, flags)
    except OSError as error:
        # a link in the place of the folder is told as what it is
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise KernelCacheError(
            "the folder for compiled kernels cannot be made or opened",
            detail=f"'{path}': {reason}",
            hint=hint,
        ) from None
    status = os.fstat(handle)
    if not _is_safe(status, stat.S_ISDIR, owner):
        os.close(handle)
        theirs = status.st_uid != owner
        raise KernelCacheError(
            "the folder for compiled kernels is not safe: what lies in it is run",
            detail=f"'{path}' "
            + (f"belongs to user {status.st_uid}" if theirs else "can be written by other users"),
            hint=hint if theirs else f"remove it, or: chmod go-w '{path}'",
        )
    return handle


def _is_safe(status: os.stat_result, is_kind: Callable[[int], bool], owner: int) -> bool:
    return is_kind(status.st_mode) and status.st_uid == owner and not status.st_mode & _OTHERS_WRITE


def _name(key: str) -> str:
    return f"{hashlib.sha256(key.encode()).hexdigest()}{_ENDING}"


def _head(key: str, data: bytes) -> bytes:
    """What stands before the data: for which key it is, and that it is whole."""
    return _MAGIC + hashlib.sha256(key.encode()).digest() + hashlib.sha256(data).digest()
