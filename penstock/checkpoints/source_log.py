"""The log of one of Spark's file sources: an entry for every time that it found files.

Entry N lists the files of one batch; ``N.compact`` those of all entries up to N. Beside each is Spark's own
checksum of it, in ``.N.crc``.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from typing import Any

from penstock.state.errors import StateError
from penstock.state.files import Folder

_ENTRY = re.compile(r"(\d+)(\.compact)?")
_CRC_HEAD = struct.Struct(">4sI")  # a mark, and how many bytes have one checksum


def planned_entries(offsets: str) -> list[tuple[int, int]]:
    """The sources with such a log, by number, and the last entry that was planned, of a text of Spark's
    offset log.

    >>> planned_entries('v1\\n{}\\n{"logOffset":7}\\n-\\n{"partition":3}')
    [(0, 7)]
    """
    planned = []
    for number, line in enumerate(offsets.splitlines()[2:]):
        offset: Any = json.loads(line) if line.startswith("{") else None
        if isinstance(offset, dict) and set(offset) == {"logOffset"}:
            planned.append((number, int(offset["logOffset"])))
    return planned


class SourceLog:
    """The log in one folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def check(self, last: int) -> None:
        """Raises unless everything up to this entry is there and whole."""
        names = set(self._folder.names())
        compact = [int(match[1]) for match in map(_ENTRY.fullmatch, names) if match and match[2]]
        start = max((number for number in compact if number <= last), default=None)
        needed = [] if start is None else [f"{start}.compact"]
        needed += [str(number) for number in range(0 if start is None else start + 1, last + 1)]
        for name in needed:
            wrong = "is missing" if name not in names else self._damage(name)
            if wrong is not None:
                raise StateError(
                    "what Spark has written down of a source cannot be read",
                    f"'{self._folder.path}/{name}' {wrong}",
                    "it says which files were read, and nothing else does: restore it from a copy, as "
                    "'penstock checkpoint copy' makes them, or start from an empty checkpoint",
                )

    def cut(self, last: int) -> None:
        """Removes what comes after this entry: its files are found again."""
        for name in self._folder.names():
            match = _ENTRY.fullmatch(name.removeprefix(".").removesuffix(".crc"))
            if name.endswith(".tmp") or (match is not None and int(match[1]) > last):
                self._folder.remove(name)

    def forget(self) -> None:
        """Removes everything, unless another kind of source has written it: that may be where it begins."""
        if all(self._lists_files(name) for name in self._folder.names() if _ENTRY.fullmatch(name)):
            self.cut(-1)

    def _lists_files(self, name: str) -> bool:
        entries = _entries(self._folder.read(name).to_pybytes())
        return entries is None or all("path" in entry for entry in entries)

    def _damage(self, name: str) -> str | None:
        data = self._folder.read(name).to_pybytes()
        if _entries(data) is None:
            return "is damaged"
        sums = f".{name}.crc"
        if self._folder.exists(sums) and not _fits(data, self._folder.read(sums).to_pybytes()):
            return "is damaged: it has another checksum than when it was written"
        return None


def _entries(data: bytes) -> list[dict[str, Any]] | None:
    """What is in an entry; None if it is damaged."""
    version, *lines = data.decode(errors="replace").split("\n")
    try:
        entries = [json.loads(line) for line in lines]
    except ValueError:
        return None
    fits = re.fullmatch(r"v\d+", version) and all(isinstance(entry, dict) for entry in entries)
    return entries if fits else None


def _fits(data: bytes, sums: bytes) -> bool:
    """Whether these are the checksums of the data: one for each piece."""
    if len(sums) < _CRC_HEAD.size:
        return False
    mark, size = _CRC_HEAD.unpack_from(sums)
    if mark != b"crc\0" or size < 1:
        return False
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    return sums[_CRC_HEAD.size :] == b"".join(struct.pack(">I", zlib.crc32(piece)) for piece in pieces)
