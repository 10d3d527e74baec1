"""What the node runtime asks of a source: a reader per partition that writes events straight into blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.connectors import Source

#: A bad record is kept with at most this many characters of its text.
RECORD_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be read. The fields are those of ``BAD_RECORD_SCHEMA``.

    ``offset`` is the record's number in the partition's input, from 0, good and bad ones counted alike; an
    event's offset counts good ones only.
    """

    partition: int
    offset: int
    record: str
    reason: str

    @classmethod
    def of(cls, partition: int, offset: int, record: str, reason: str) -> BadRecord:
        """With a record of any length, of which the beginning is kept."""
        return cls(partition, offset, record[:RECORD_CHARS], reason)


class Reader(ABC):
    """One partition of an opened source; used by one thread at a time.

    Invariants: offsets are dense, event i of the partition has offset i; events and bad records depend on the
    partition's input only, never on how ``read`` calls cut it or which columns the layout holds.
    """

    def __init__(self, partition: int = 0) -> None:
        self.partition = partition
        #: The offset of the next event, which is also the number of events read so far.
        self.offset = 0

    @abstractmethod
    def available(self, now_ns: int) -> int:
        """Events that can be read now without waiting: a lower bound, 0 if nothing is there yet.

        Cheap, never blocks; may poll a socket or list a folder. Where the number is not known before records
        are decoded it is 1; the records may then all turn out bad, and ``read`` returns 0.
        """

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether nothing will ever come again."""

    @abstractmethod
    def read(self, columns: Columns, start: int, limit: int) -> int:
        """Writes up to ``limit`` events into ``columns[start:]``, in ``open``'s layout; returns how many.

        Fills the layout's visible columns and nothing else. Fewer than ``limit``, even 0, is no sign of the
        end.
        """

    def created_ns(self) -> int | None:
        """When the event at ``offset - 1`` was due, on the clock of ``available``'s ``now_ns``; None if not
        paced.
        """
        return None

    def take_bad(self) -> list[BadRecord]:
        """The bad records found since the last call."""
        return []

    def next_due_ns(self) -> int | None:
        """When to look again if nothing is available, on the clock of ``now_ns``; None if there is no
        telling.
        """
        return None

    def fileno(self) -> int | None:
        """A descriptor that becomes readable when more may be available, for ``select``; None if there is
        none.
        """
        return None

    def close(self) -> None:  # noqa: B027 - most readers hold nothing
        """Lets go of files and sockets. No other call may follow."""


class NodeSource(Source):
    """A source that the node runtime can open."""

    @abstractmethod
    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        """A reader per partition, in the order of their numbers.

        ``layout`` holds the columns that somebody reads, and perhaps system columns, which the engine fills
        itself.
        """


def visible_arrays(layout: Layout) -> list[int]:
    """Where in a block's columns those stand that a reader fills: data and masks of the user's columns."""
    places: list[int] = []
    for field in layout.fields:
        if not field.name.startswith("$"):
            places.append(layout.data(field.name))
            nulls = layout.nulls(field.name)
            if nulls is not None:
                places.append(nulls)
    return places
