"""A disk that is full: a small file system of its own, or where none can be mounted, writes that fail.

Also a hook of every Python process of a run, so it must load alone, with the standard library only.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_FULL, _ROOT = "PENSTOCK_DISK_FULL", "PENSTOCK_DISK_ROOT"
_MIB = 48


class SmallDisk:
    """A disk at ``root``, an empty folder; ``folder`` is for its own notes and lies elsewhere."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self._folder = root, folder
        self._ballast, self._note = root / "ballast", folder / "full"
        root.mkdir(parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={_MIB}m,mode=700", "tmpfs", str(root)]
        done = subprocess.run(mount, capture_output=True, check=False) if os.geteuid() == 0 else None
        self.is_mounted = done is not None and done.returncode == 0

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of processes that write to it."""
        from lab.bench.faults.hooks import hooked

        if self.is_mounted:
            return dict(environment)
        armed = hooked(environment, self._folder / "site", __file__)
        return {**armed, _FULL: str(self._note), _ROOT: str(self._root)}

    def fill(self, leave: int) -> None:
        """Leaves so many bytes; to be called again where files may have been removed since."""
        if not self.is_mounted:
            self._note.touch()
            return
        free = os.statvfs(self._root).f_bavail * os.statvfs(self._root).f_frsize - leave
        with contextlib.suppress(OSError), self._ballast.open("ab") as ballast:
            while free > 0:
                ballast.write(bytes(min(free, 1 << 20)))
                free -= 1 << 20

    def free(self) -> None:
        """There is room again."""
        self._note.unlink(missing_ok=True)
        self._ballast.unlink(missing_ok=True)

    def remove(self) -> None:
        """Takes the disk away, with all that is on it."""
        if self.is_mounted:
            subprocess.run(["umount", "-l", str(self._root)], check=True)
            self.is_mounted = False


def arm() -> None:
    """Lets writes of this process fail while the disk is full."""
    note, root = os.environ.get(_FULL), os.environ.get(_ROOT)
    if note is None or root is None:
        return

    def check(path: object) -> None:
        if isinstance(path, str | os.PathLike) and os.path.exists(note):
            name = os.path.abspath(os.fspath(path))
            if str(name).startswith(root):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

    def checked(function: Callable[..., Any], writes: Callable[[Any], bool]) -> Callable[..., Any]:
        def call(path: Any, how: Any = None, *rest: Any, **named: Any) -> Any:
            how = named.pop("mode" if function is _open else "flags", how)
            if writes(how):
                check(path)
            return function(path, *(() if how is None else (how, *rest)), **named)

        return call

    writing = checked(_open, lambda mode: isinstance(mode, str) and bool(set(mode) & set("wax+")))
    builtins.open = io.open = writing  # pathlib takes the second
    os.open = checked(_os_open, lambda flags: bool(flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR)))


_open, _os_open = builtins.open, os.open
