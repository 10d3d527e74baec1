"""One writer at a time for an output file or folder, whichever run or process it is of."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from penstock.query.errors import RunError


class TargetLock:
    """Held from when the target is there; the operating system frees it when the process ends.

    Where a file system has no locks, there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._descriptor = path, -1
        self.take()

    def take(self) -> None:
        """Makes sure that it is held, if the target is there. Raises ``RunError`` if another has it."""
        if self._descriptor >= 0 or not (self._path.is_file() or self._path.is_dir()):
            return  # a device or a pipe takes what anybody writes
        self._descriptor = os.open(self._path, os.O_RDONLY)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.free()
            raise RunError(
                f"'{self._path}' is being written by another run: stop it first, or give another path"
            ) from None
        except OSError:
            self.free()

    def free(self) -> None:
        """Lets others in."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    __del__ = free
