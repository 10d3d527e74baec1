"""One run at a time in a checkpoint on this machine: a second is told so before it does anything."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from datetime import UTC, datetime

from penstock.query.errors import RunError
from penstock.state.files import create_folder, local_path


class CheckpointLock:
    """Held by a run as long as it lives; the operating system frees it when the process ends, however it
    does.

    It is on the folder itself, so whoever removes a file in it admits nobody. Only local folders can be
    locked; whoever is not stopped here loses when a manifest is committed.
    """

    def __init__(self, root: str) -> None:
        self._folder: int | None = None
        root = local_path(root)
        if "://" in root:
            return
        try:
            create_folder(root)
            self._folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise RunError(f"the checkpoint '{root}' cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.free()
            raise RunError(
                f"another run uses the checkpoint '{root}': "
                "stop it first, or give this one a folder of its own"
            ) from None
        except OSError:  # a file system without locks
            self.free()
        if not os.access(root, os.W_OK):
            self.free()
            raise RunError(f"the checkpoint '{root}' cannot be written: Permission denied")

    def free(self) -> None:
        """Lets the next run in."""
        folder, self._folder = self._folder, None
        if folder is not None:
            with contextlib.suppress(OSError):
                os.close(folder)


def this_process() -> str:
    """Who has a checkpoint, as the loser is told."""
    started = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {socket.gethostname()} (started {started} UTC)"
