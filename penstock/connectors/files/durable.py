"""Files that survive a crash: replaced whole, or appended to from a known length."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path


def hidden(path: Path) -> Path:
    """The name that a file has until it is whole; no reader looks at it."""
    return path.with_name(f".{path.name}.tmp")


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Lets ``write`` make the file under its hidden name, then gives it its own, replacing one that is there.

    The file and its name are on disk when this returns. Before that, the old one is there as it was.
    """
    write(hidden(path))
    name_whole(path)


def name_whole(path: Path) -> None:
    """Gives a file that is whole under its hidden name its own."""
    temporary = hidden(path)
    sync(temporary)
    os.replace(temporary, path)
    sync(path.parent)  # without this a crash may forget the new name


class LogFile:
    """A file that grows at its end and can be cut back; a pipe or a device can only grow."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        self._is_file = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        if self._is_file:
            sync(path.parent)

    @property
    def length(self) -> int:
        return os.fstat(self._descriptor).st_size

    def is_at(self, path: Path) -> bool:
        """Whether the file still has that name."""
        try:
            return os.path.samestat(os.stat(path), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def cut(self, length: int) -> None:
        """Takes away what comes after ``length`` bytes; that is on disk when this returns."""
        if self.length > length:
            os.ftruncate(self._descriptor, length)
            os.fsync(self._descriptor)

    def append(self, data: bytes) -> None:
        left = memoryview(data)
        while left:  # a write may take less than it was given
            left = left[os.write(self._descriptor, left) :]

    def sync(self) -> None:
        """Waits until all that was appended is on disk."""
        if self._is_file:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """A second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def sync(path: Path) -> None:
    """Waits until a file's content, or which names a folder has, is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
