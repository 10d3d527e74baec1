"""The journal of a source of files: which were found, in which order, and how each of them looked then."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from penstock.query.errors import RunError
from penstock.state.files import Folder
from penstock.state.manifest import checksum

_PREFIX = "files-"
# As many entries of a journal are written into one again.
_ENTRIES = 200
_LOOK_BYTES = 1 << 16  # at the beginning and at the end of a file


@dataclass(frozen=True)
class InputFile:
    """A file as it was when it was found."""

    path: str
    units: int  # rows, or bytes of text: how much of it is read
    size: int
    changed_ns: int
    checksum: str  # of its beginning and its end: finds what was written anew or appended to

    @classmethod
    def of(cls, path: Path, units: int) -> InputFile:
        try:
            found = path.stat()
            return cls(str(path), units, found.st_size, found.st_mtime_ns, _look(path, found.st_size))
        except OSError as error:
            raise RunError(f"cannot read file '{path}': {error}") from error

    def change(self) -> str | None:
        """What has become of the file since, in words; None: nothing."""
        try:
            found = os.stat(self.path)
            if found.st_size != self.size:
                return f"has {found.st_size:,} bytes, it had {self.size:,}"
            if found.st_mtime_ns != self.changed_ns and _look(Path(self.path), self.size) != self.checksum:
                return "has other content"
        except FileNotFoundError:
            return "is gone"
        except OSError as error:
            return f"cannot be read: {error}"
        return None


class FileJournal:
    """The files found, in order, as JSON; an entry is named after the number of its first file.

    Invariant: an entry is written before anybody is told of its files, and whole or not at all. Without a
    path it is a list in memory.
    """

    def __init__(self, path: str | None) -> None:
        self.files: list[InputFile] = []
        self._marks: list[str] = [""]  # of the first so many files
        self._folder = None if path is None else Folder(path)
        self._entries: list[str] = []
        if self._folder is not None:
            self._entries = [name for name in self._folder.names() if name.startswith(_PREFIX)]
            for name in self._entries:
                first = _first_of(name)
                if first > len(self.files):
                    raise RunError(f"the journal '{path}' has a gap: no entry leads up to '{name}'")
                self._add(_read(self._folder, name)[len(self.files) - first :])

    def append(self, files: Sequence[InputFile]) -> None:
        if self._folder is not None:
            if len(self._entries) >= _ENTRIES:
                # From the oldest on: what a crash leaves are the latest, which say the same once more.
                obsolete, self._entries = self._entries, [_write(self._folder, 0, self.files)]
                for name in obsolete[1:]:
                    self._folder.remove(name)
            self._entries.append(_write(self._folder, len(self.files), files))
        self._add(files)

    def replace_from(self, first: int, files: Sequence[InputFile]) -> None:
        """Puts other files in the place of all from number ``first`` on: those of which nothing was read.

        The latest entries go first, so that a crash in between leaves a journal without a gap, of which some
        of those files are missing.
        """
        if self._folder is not None:
            for name in reversed(self._entries):
                begin = _first_of(name)
                if begin >= first:
                    self._folder.remove(name)
                else:
                    _write(self._folder, begin, self.files[begin:first])
                    break
            self._entries = [name for name in self._entries if _first_of(name) < first]
        del self.files[first:], self._marks[first + 1 :]
        if files:
            self.append(files)

    def mark(self, files: int) -> str:
        """What the manifest keeps of the first so many files, to know the journal again."""
        return f"{files}:{self._marks[files]}"

    def check(self, mark: str) -> None:
        """Refuses a journal that is not the one that the manifest knows."""
        files = int(mark.partition(":")[0])
        if files > len(self.files) or self.mark(files) != mark:
            where = "" if self._folder is None else f" in '{self._folder.path}'"
            found = f"has {len(self.files)} files" if files > len(self.files) else "names other files"
            raise RunError(
                f"the journal of a source is not that of its checkpoint: {files} files had been begun, the "
                f"one{where} {found}; restore both from one copy, or start with a new checkpoint"
            )

    def _add(self, files: Sequence[InputFile]) -> None:
        for file in files:
            self.files.append(file)
            said = json.dumps([self._marks[-1], *astuple(file)])
            self._marks.append(checksum(said.encode()))


def _first_of(entry: str) -> int:
    return int(entry.removeprefix(_PREFIX).removesuffix(".json"))


def _look(path: Path, size: int) -> str:
    with path.open("rb") as file:
        seen = file.read(_LOOK_BYTES)
        if size > _LOOK_BYTES:
            file.seek(max(_LOOK_BYTES, size - _LOOK_BYTES))
            seen += file.read(_LOOK_BYTES)
    return checksum(seen)


def _write(folder: Folder, first: int, files: Sequence[InputFile]) -> str:
    name = f"{_PREFIX}{first:012d}.json"
    folder.write(name, json.dumps([astuple(file) for file in files], indent=0).encode())
    return name


def _read(folder: Folder, name: str) -> list[InputFile]:
    try:
        content: Any = json.loads(bytes(folder.read(name)))
        return [InputFile(*entry) for entry in content]
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"cannot read '{name}' in the journal '{folder.path}': {error}") from None
