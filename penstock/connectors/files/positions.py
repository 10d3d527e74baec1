"""Positions in files: they are read one behind the other, in the order in which they were found, as if they
were one file. So a position is a number of rows, or of bytes of text, from the beginning of the first.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from penstock.connectors.files.journal import FileJournal, InputFile
from penstock.connectors.files.parts import FilePart
from penstock.connectors.formats.format import Format
from penstock.connectors.reader import Positions
from penstock.query.errors import RunError

# A folder that takes longer than this to list is not listed at every question.
_QUICK_NS = 1_000_000


class ListedSource(Protocol):
    """What is asked of a source of files."""

    @property
    def bounded(self) -> bool:
        """Whether files that appear later do not belong to it."""

    def list_files(self) -> list[Path]:
        """The files there now that belong to the source, in name order."""

    @property
    def format(self) -> Format:
        """What they are read as."""

    def bytes_per_event(self, path: Path) -> int:
        """About how much memory an event takes."""


class FilePositions(Positions):
    """The files of a source as one partition. A journal keeps their order over restarts."""

    def __init__(
        self, source: ListedSource, journal: str | None, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._source, self._clock = source, clock
        self._journal = FileJournal(journal)
        self._files = self._journal.files
        self._known = {file.path for file in self._files}
        self._ends = list(accumulate(file.units for file in self._files))
        self._list_again_ns = clock()
        if source.bounded and self._files:
            check_same(self._files, source.list_files())
        elif source.bounded:
            self._find()

    @property
    def final(self) -> list[int] | None:
        return [self._end] if self._source.bounded else None

    def latest(self, start: Sequence[int], limit: int | None) -> list[int]:
        (first,) = start
        self._place(first)
        if not self._source.bounded:
            self._find()
        if limit is None:
            return [self._end]
        end, left = first, float(limit)
        while end < self._end and left >= 1:
            number, begin = self._place(end)
            file = self._files[number]
            path, rest = Path(file.path), file.units - begin
            per_event = self._source.format.units_per_event(path)
            wanted = max(1, int(left * per_event))
            if rest > wanted:
                cut = self._source.format.cut(path, begin, begin + wanted)
                if cut is not None:
                    return [end - begin + min(cut, file.units)]
                if end > first:  # all of it or nothing
                    return [end]
            end += rest
            left -= rest / per_event
        return [end]

    def event_bytes(self, start: Sequence[int]) -> int | None:
        if start[0] >= self._end:
            return None
        return self._source.bytes_per_event(Path(self._files[self._place(start[0])[0]].path))

    def waiting(self, start: Sequence[int]) -> int:
        if start[0] >= self._end:
            return 0
        file = self._files[self._place(start[0])[0]]
        return math.ceil((self._end - start[0]) / self._source.format.units_per_event(Path(file.path)))

    def mark(self, start: Sequence[int]) -> str | None:
        return self._journal.mark(self._begun(start[0]))

    def describe(self, partition: int, start: int, end: int) -> list[FilePart]:
        """The parts of files."""
        parts: list[FilePart] = []
        while start < end:
            number, begin = self._place(start)
            file = self._files[number]
            stop = min(file.units, begin + end - start)
            parts.append(FilePart(Path(file.path), begin, stop, file))
            start += stop - begin
        return parts

    @property
    def _end(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _place(self, position: int) -> tuple[int, int]:
        """The file in which a position stands, and where in it."""
        if position > self._end:
            raise RunError(
                f"the source was read up to {position}, but its known files end at {self._end}: the journal "
                f"of the source is lost or not of this checkpoint; start with a new checkpoint"
            )
        number = bisect_right(self._ends, position)
        return number, position - (self._ends[number - 1] if number else 0)

    def _begun(self, position: int) -> int:
        """How many files have been read, or a part of them."""
        number, begin = self._place(position)
        return number + (begin > 0)

    def _find(self) -> None:
        now_ns = self._clock()
        if now_ns < self._list_again_ns:
            return
        found = [path.absolute() for path in self._source.list_files()]
        then_ns = self._clock()
        self._list_again_ns = then_ns + (10 * (then_ns - now_ns) if then_ns - now_ns > _QUICK_NS else 0)
        new = [input_file(self._source, path) for path in found if str(path) not in self._known]
        if new:
            self._journal.append(new)
            self._known.update(file.path for file in new)
            for file in new:
                self._ends.append(self._end + file.units)


def check_same(known: Sequence[InputFile], found: Sequence[Path]) -> None:
    """Refuses to go on inside a run where files of a source that is to end have come, gone or changed."""
    names = {str(path.absolute()) for path in found}
    changes = [f"'{file.path}' is gone" for file in known if file.path not in names]
    changes += [f"'{name}' is new" for name in sorted(names - {file.path for file in known})]
    changes += [f"'{file.path}' {file.change()}" for file in known if file.path in names and file.change()]
    if changes:
        raise files_changed(changes)


def check_read(source: ListedSource, files: Sequence[InputFile], position: int) -> list[str]:
    """What has become of the files of a source of which so much has been read; in words. Those that were
    begun must be as they were, unless the source is watched and has read them to their ends."""
    names = {str(path.absolute()) for path in source.list_files()} if source.bounded else None
    told: list[str] = []
    gone: list[str] = []
    broken: list[str] = []
    end = 0
    for file in files:
        begin, end = end, end + file.units
        change = file.change() if names is None or file.path in names else "is gone"
        if change is None:
            continue
        if begin >= position:
            told.append(f"'{file.path}', of which nothing was read, {change}")
        elif end > position or source.bounded:
            broken.append(f"'{file.path}' {change}")
        elif Path(file.path).exists():
            told.append(f"'{file.path}' {change}, and has been read as it was")
        else:
            gone.append(file.path)
    if broken:
        raise files_changed(broken)
    if gone:
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        told.append(f"'{gone[0]}'{more}, read before, {'is' if len(gone) == 1 else 'are'} gone")
    if names is not None:
        told += [f"'{name}' is new" for name in sorted(names - {file.path for file in files})]
    return told


def renew_unread(source: ListedSource, journal: FileJournal, position: int) -> None:
    """Lists the files anew of which nothing was read, where they have changed: what no version of the
    checkpoint relies on may be mended, come and go."""
    files = journal.files
    ends = accumulate(file.units for file in files)
    begun = sum(end - file.units < position for file, end in zip(files, ends, strict=True))
    unread = {file.path: file for file in files[begun:] if file.change() is None}
    if source.bounded:
        read = {file.path for file in files[:begun]}
        paths = [path.absolute() for path in source.list_files()]
        wanted = [
            unread.get(str(path)) or input_file(source, path) for path in paths if str(path) not in read
        ]
    else:  # the order in which they were found stays
        wanted = list(unread.values())
    if wanted != files[begun:]:
        journal.replace_from(begun, wanted)


def input_file(source: ListedSource, path: Path) -> InputFile:
    """A file as it is now."""
    return InputFile.of(path, max(1, source.format.units_in(path)))


def files_changed(changes: Sequence[str]) -> RunError:
    more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    return RunError(
        f"the files of a source changed since its checkpoint was begun: {changes[0]}{more}; "
        f"put them back, give watch=True for files that come later, or start with a new checkpoint"
    )
