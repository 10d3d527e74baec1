"""What a format says of itself: how rows stand in files, and how a file is read in parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from penstock.connectors.files.decoding import Piece
from penstock.connectors.files.parts import FilePart
from penstock.connectors.formats.lines import Parsed
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.types import Schema


@dataclass(frozen=True)
class Format(ABC):
    """A way in which bytes are rows. Subclasses are frozen dataclasses, whose fields are their settings.

    A format of one's own is a ``LineFormat`` or a ``TableFormat``.
    """

    #: As ``format=`` and checkpoints have it.
    name: ClassVar[str]
    #: How names of its files end; the first is that of files which are written.
    endings: ClassVar[tuple[str, ...]]
    #: What a record is called in such a file.
    record: ClassVar[str]

    def __init_subclass__(cls, abstract: bool = False, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        missing = [name for name in ("name", "endings", "record") if not hasattr(cls, name)]
        if missing and not abstract:
            raise TypeError(f"format {cls.__name__} does not say its {' and its '.join(missing)}")

    @property
    def delivered_as(self) -> str:
        """The kind of what sinks have delivered in this format, in manifests: never to be changed."""
        return self.name

    def check(self, schema: Schema) -> None:  # noqa: B027 - most hold any row
        """Raises ``QueryError`` if the format cannot hold rows of this schema."""

    @property
    def no_schema(self) -> str | None:
        """Why files do not tell their columns, in words; None: they do, and ``infer`` reads them."""
        return f"a file of format '{self.name}' does not tell its columns"

    def infer(self, path: Path) -> Schema:
        """The schema that a file has or suggests. Not called where there is ``no_schema``."""
        raise QueryError(str(self.no_schema), hint="give schema={'ts': 'timestamp', ...}")

    @abstractmethod
    def batches(
        self, part: FilePart, schema: Schema, layout: Layout, strings: StringPool
    ) -> Iterator[Parsed]:
        """The events of a part of a file, batch by batch."""

    def pieces(
        self, part: FilePart, schema: Schema, layout: Layout, strings: StringPool
    ) -> Iterator[Piece[Parsed]]:
        """The same in pieces, each of which can be decoded by itself, in any thread; a generator. What a
        format does not cut is decoded where it is asked for."""
        for batch in self.batches(part, schema, layout, strings):
            yield partial(_itself, batch)

    # -- files in parts --------------------------------------------------------------------------------------

    @abstractmethod
    def units_in(self, path: Path) -> int:
        """How many units a file has in which its parts are measured: rows, or bytes of text."""

    @abstractmethod
    def cut(self, path: Path, begin: int, place: int) -> int | None:
        """Where a part from ``begin`` ends that is to end at about ``place``, between two records; None if
        the file can be read in one piece only."""

    @abstractmethod
    def records_before(self, part: FilePart) -> int:
        """How many lines or rows the file has in front of the part."""

    def units_per_event(self, path: Path) -> float:
        """About how many of them an event takes, for a look at no more than the file's beginning."""
        return 1.0

    def bytes_per_event(self, path: Path) -> int:
        """About how much memory an event takes, if that is more than its columns suggest."""
        return int(self.units_per_event(path))


def _itself(batch: Parsed) -> Parsed:
    return batch
