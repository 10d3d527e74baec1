"""Positions in files: how many of them, in the order in which they were found."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from penstock.engine.sources.reader import Positions
from penstock.query.errors import RunError
from penstock.state.files import Folder

_PREFIX = "files-"
# As many entries of a journal are written into one again.
_ENTRIES = 200
# A folder that takes longer than this to list is not listed at every question.
_QUICK_NS = 1_000_000


class ListedSource(Protocol):
    """What is asked of a source of files."""

    @property
    def bounded(self) -> bool:
        """Whether files that appear later do not belong to it."""

    def list_files(self) -> list[Path]:
        """The files there now that belong to the source, in name order."""

    def events_in(self, path: Path) -> int:
        """About how many events a file has."""


class FilePositions(Positions):
    """The files of a source as one partition. A journal keeps their order over restarts."""

    def __init__(
        self, source: ListedSource, journal: str | None, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._source, self._clock = source, clock
        self._journal = _Journal(journal)
        self._files = self._journal.files
        self._known = set(self._files)
        self._list_again_ns = clock()
        if source.bounded and self._files:
            self._check()
        elif source.bounded:
            self._find()

    @property
    def final(self) -> list[int] | None:
        return [len(self._files)] if self._source.bounded else None

    def latest(self, start: Sequence[int], limit: int | None) -> list[int]:
        (first,) = start
        if first > len(self._files):
            raise RunError(
                f"{first} files were read, but only {len(self._files)} are known: the journal of the source "
                f"is lost or not of this checkpoint; start with a new checkpoint"
            )
        if not self._source.bounded:
            self._find()
        if limit is None:
            return [len(self._files)]
        end, events = first, 0
        while end < len(self._files):
            events += self._source.events_in(Path(self._files[end]))
            if events > limit and end > first:
                break
            end += 1
        return [end]

    def describe(self, partition: int, start: int, end: int) -> list[str]:
        """The paths of the files."""
        return self._files[start:end]

    def _find(self) -> None:
        now_ns = self._clock()
        if now_ns < self._list_again_ns:
            return
        found = [str(path.absolute()) for path in self._source.list_files()]
        then_ns = self._clock()
        self._list_again_ns = then_ns + (10 * (then_ns - now_ns) if then_ns - now_ns > _QUICK_NS else 0)
        new = [name for name in found if name not in self._known]
        if new:
            self._journal.append(new)
            self._known.update(new)

    def _check(self) -> None:
        found = {str(path.absolute()) for path in self._source.list_files()}
        changes = [f"'{name}' is gone" for name in self._files if name not in found]
        changes += [f"'{name}' is new" for name in sorted(found - self._known)]
        if changes:
            more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
            raise RunError(
                f"the files of a source changed since its checkpoint was begun: {changes[0]}{more}; "
                f"put them back, give watch=True, or start with a new checkpoint"
            )


class _Journal:
    """The files found, in order, as JSON; an entry is named after the position of its first file.

    Invariant: an entry is written before anybody is told of its files, and whole or not at all. Without a
    path it is a list in memory.
    """

    def __init__(self, path: str | None) -> None:
        self.files: list[str] = []
        self._folder = None if path is None else Folder(path)
        self._entries: list[str] = []
        if self._folder is not None:
            self._entries = [name for name in self._folder.names() if name.startswith(_PREFIX)]
            for name in self._entries:
                first = int(name.removeprefix(_PREFIX).removesuffix(".json"))
                if first > len(self.files):
                    raise RunError(f"the journal '{path}' has a gap: no entry leads up to '{name}'")
                self.files += _read(self._folder, name)[len(self.files) - first :]

    def append(self, files: Sequence[str]) -> None:
        if self._folder is not None:
            if len(self._entries) >= _ENTRIES:
                # From the oldest on: what a crash leaves are the latest, which say the same once more.
                obsolete, self._entries = self._entries, [_write(self._folder, 0, self.files)]
                for name in obsolete[1:]:
                    self._folder.remove(name)
            self._entries.append(_write(self._folder, len(self.files), files))
        self.files += files


def _write(folder: Folder, first: int, files: Sequence[str]) -> str:
    name = f"{_PREFIX}{first:012d}.json"
    folder.write(name, json.dumps(list(files), indent=0).encode())
    return name


def _read(folder: Folder, name: str) -> list[str]:
    try:
        content: Any = json.loads(bytes(folder.read(name)))
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read '{name}' in the journal '{folder.path}': {error}") from None
    return [str(entry) for entry in content]
