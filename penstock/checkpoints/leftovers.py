"""What killed runs have left and nobody needs: removed by the next start."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.checkpoints.folders import TEMPORARY, Checkpoint
from penstock.state.files import Folder

#: A younger folder may be one whose run has not locked it yet.
_YOUNG_S = 60.0


@dataclass(frozen=True)
class Leftovers:
    """What was in a checkpoint when a run began, and is not part of it."""

    checkpoint: Checkpoint
    shipped: tuple[str, ...]  # data that sources had handed to processes of an earlier run

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Leftovers:
        return cls(checkpoint, tuple(Folder(checkpoint.shipped).names()))

    def remove(self, sources: Iterable[str]) -> None:
        """Removes it. Only for the run that has the checkpoint, before it starts anything."""
        shipped = Folder(self.checkpoint.shipped)
        for name in self.shipped:
            shipped.remove(name)
        results = Folder(self.checkpoint.results)
        for name in results.names():
            results.remove(name)
        Folder(self.checkpoint.root).remove_temporary()
        for source_id in sources:
            Folder(self.checkpoint.source(source_id)).remove_temporary()


def remove_abandoned() -> None:
    """Removes the folders of runs without a checkpoint whose processes are gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        with contextlib.suppress(OSError), _locked(folder) as is_abandoned:
            if is_abandoned:
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Takes the lock that a run holds on its folder as long as it lives; whether it could be had."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.getuid() or time.time() - status.st_mtime < _YOUNG_S:
            yield False
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
