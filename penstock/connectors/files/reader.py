"""Readers of files, one after the other: those of a list, or those that appear in a folder."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from penstock.connectors.buffered import BufferedReader
from penstock.connectors.files.decoding import Decoding, DecodingThreads
from penstock.connectors.files.parts import FilePart
from penstock.connectors.formats.format import Format
from penstock.connectors.formats.lines import Parsed
from penstock.connectors.reader import Resume
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.types import Schema

_POLL_NS = 100_000_000


class FileFolder(Protocol):
    """A source whose files are to be found."""

    def checked(self, layout: Layout) -> Schema:
        """The columns that are parsed where the layout's are read."""

    @property
    def format(self) -> Format:
        """What the files are read as."""

    def list_files(self) -> list[Path]:
        """The files there now that belong to the source, in name order."""


class FilesReader(BufferedReader):
    """Reads the given parts of files, one after the other."""

    def __init__(
        self,
        source: FileFolder,
        parts: Iterable[FilePart],
        layout: Layout,
        strings: StringPool,
        resume: Resume | None = None,
    ) -> None:
        super().__init__(layout, resume=resume)
        self._source, self._layout, self._strings = source, layout, strings
        self._waiting = deque(parts)
        self._part: FilePart | None = None
        self._threads = DecodingThreads()
        self._batches: Decoding[Parsed] | None = None
        self._lines = 0  # lines before the next batch, in the current part

    def available(self, now_ns: int) -> int:
        if self.buffered:
            return self.buffered
        return 1 if self._batches is not None or self._waiting else 0

    @property
    def finished(self) -> bool:
        return not (self.buffered or self._waiting or self._batches is not None)

    def refill(self) -> None:
        while self._batches is not None or self._waiting:
            if self._batches is None:
                self._part, self._lines = self._waiting.popleft(), 0
                self._part.check()
                pieces = self._source.format.pieces(
                    self._part, self._source.checked(self._layout), self._layout, self._strings
                )
                self._batches = Decoding(pieces, self._threads)
            parsed = self._batches.take()
            if parsed is None:
                self._batches = None
                continue
            assert self._part is not None
            before = self._lines
            if parsed.bad:  # only then: to know it, text must be read from its beginning
                before += self._source.format.records_before(self._part)
            for bad in parsed.bad:
                place = f"{self._source.format.record} {before + bad.line + 1} of {self._part.path.name}"
                self.reject(self._records + bad.record, bad.text, f"{bad.reason} ({place})")
            self._lines += parsed.lines
            self.hold(parsed.columns, parsed.count, parsed.records)
            return

    def close(self) -> None:
        if self._batches is not None:
            self._batches.close()
            self._batches = None
        self._threads.close()
        self._waiting.clear()


class FolderReader(FilesReader):
    """Reads the files of a folder; with ``watch``, for ever, also those that appear later."""

    def __init__(self, source: FileFolder, watch: bool, layout: Layout, strings: StringPool) -> None:
        super().__init__(source, (), layout, strings)
        self._watch = watch
        self._seen: set[Path] = set()
        self._listed_ns: int | None = None
        self._list()

    def available(self, now_ns: int) -> int:
        ready = super().available(now_ns)
        if ready:
            return ready
        if self._watch and (self._listed_ns is None or now_ns >= self._listed_ns + _POLL_NS):
            self._listed_ns = now_ns
            self._list()
        return 1 if self._waiting else 0

    @property
    def finished(self) -> bool:
        return not self._watch and super().finished

    def next_due_ns(self) -> int | None:
        if not self._watch or self._listed_ns is None:
            return None
        return self._listed_ns + _POLL_NS

    def _list(self) -> None:
        new = [path for path in self._source.list_files() if path not in self._seen]
        self._seen.update(new)
        self._waiting.extend(map(FilePart, new))
