"""One run at a time in a checkpoint: two would overwrite each other's state."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from penstock.query.errors import RunError


class CheckpointLock:
    """Held by a run as long as it lives; the operating system frees it when the process ends, however it
    does. Only local folders can be locked."""

    def __init__(self, root: str) -> None:
        self._file: int | None = None
        if "://" in root:
            return
        try:
            Path(root).mkdir(parents=True, exist_ok=True)
            self._file = os.open(Path(root) / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise RunError(f"the checkpoint '{root}' cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.free()
            raise RunError(
                f"another run uses the checkpoint '{root}': "
                "stop it first, or give this one a folder of its own"
            ) from None
        except OSError:  # a file system without locks
            self.free()

    def free(self) -> None:
        """Lets the next run in."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                os.close(file)
