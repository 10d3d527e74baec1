"""What the runtimes ask of a source: readers that write events straight into blocks, and positions that can
be read again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.connectors import Source
from penstock.query.errors import RunError

#: A bad record is kept with at most this many characters of its text.
RECORD_CHARS = 1_000
#: Where a partition ends that never does.
ENDLESS = 1 << 62


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


@dataclass(frozen=True, slots=True)
class Resume:
    """Where one partition goes on."""

    #: in the source's own unit: events, files, or pieces of a spool
    position: int = 0
    #: events before it
    offset: int = 0
    #: records before it, good and bad
    records: int = 0


class Reader(ABC):
    """One partition of an opened source; used by one thread at a time.

    Invariants: offsets are dense, event i of the partition has offset i; events and bad records depend on the
    partition's input only, never on how ``read`` calls cut it or which columns the layout holds.
    """

    def __init__(self, partition: int = 0) -> None:
        self.partition = partition
        #: The offset of the next event, which is also the number of events read so far.
        self.offset = 0

    @property
    def records(self) -> int:
        """Records decoded so far, good and bad; all up to the reader's end once it has ``finished``."""
        return self.offset

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

    @property
    def reached_us(self) -> int | None:
        """The event time that the partition itself said to have come to, before the events last read; None
        if it said nothing: then the events say it."""
        return None

    def created_ns(self) -> int | None:
        """When the event at ``offset - 1`` was due, on the clock of ``available``'s ``now_ns``; None if not
        paced.
        """
        return None

    def burst_ns(self) -> int | None:
        """When the next event to be read came, if many come at once and none before; else None."""
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

    @property
    def heard_once(self) -> bool:
        """Whether a second reader, with positions of its own, would not be given the same events."""
        return False

    @property
    def grows(self) -> bool:
        """Whether a run that goes on may find partitions more, behind those that it knows."""
        return False

    def warm_up(self) -> None:
        """Does beforehand what the first read in a process would take long for, such as compiling."""

    def positions(self, journal: str | None = None, start: Sequence[int] | None = None) -> Positions:
        """How far it can be read, for a run that goes on at ``start``; None is the beginning.

        ``journal`` is a folder that belongs to this source alone and outlives the run, a path or a URI. A
        source whose order of events is not in its data keeps it there.
        """
        raise RunError(
            f"a {type(self).__name__} source cannot be read again: Spark needs that after a failure; "
            f"run it with on=ps.Node(), or write its events to files first"
        )

    def open_range(
        self,
        partition: int,
        resume: Resume,
        end: int,
        layout: Layout,
        strings: StringPool,
        hint: Any = None,
    ) -> Reader:
        """A reader of the events from ``resume`` to position ``end``, all of which are due.

        ``hint`` is what ``Positions.describe`` said of the range. The reader's offsets, and the numbers of
        bad records, go on where ``resume`` says. ``created_ns`` is in Unix time.
        """
        raise RunError(f"a {type(self).__name__} source cannot be read by ranges")

    def check_input(self, journal: str, position: int, mark: str | None) -> list[str]:
        """What has changed of the input since a run had come to ``position``, in words for people; raises
        ``RunError`` where it cannot be read on. Changes nothing.

        ``mark`` is what ``Positions.mark`` said then, None if nothing.
        """
        return []

    def begin_run(self, journal: str, position: int) -> None:
        """Called when a checkpoint is this run's, which goes on at ``position``: forgets what was noted in
        the journal of input behind it, if that has changed."""

    def shipped(self, folder: str) -> NodeSource:
        """The same source in a form that is cheap to send to other processes.

        What is large is written into ``folder``, once; the other processes must be able to read it there.
        """
        return self


class Positions(ABC):
    """How far a source's partitions can be read. One process has it, beside the driver."""

    #: When pacing began, in Unix time; None for a source that is not paced.
    started_unix_ns: int | None = None
    #: How many events it gives out at once of those that are always there; None: whatever there is.
    stretch: int | None = None

    @property
    @abstractmethod
    def final(self) -> list[int] | None:
        """Where each partition ends, ``ENDLESS`` for one that does not; None if none is known to."""

    @abstractmethod
    def latest(self, start: Sequence[int], limit: int | None) -> list[int]:
        """How far each partition can be read now: at most about ``limit`` events in all beyond ``start``.

        What it returned once stays readable, also after a restart.
        """

    def event_bytes(self, start: Sequence[int]) -> int | None:
        """About how much memory an event behind ``start`` takes; None: as much as its columns suggest."""
        return None

    def waiting(self, start: Sequence[int]) -> int:
        """About how many events behind ``start`` are known to be there. Cheap: it looks for no new ones."""
        return 0

    def mark(self, start: Sequence[int]) -> str | None:
        """A text by which the manifest knows the journal again, as far as it leads up to ``start``."""
        return None

    def describe(self, partition: int, start: int, end: int) -> Any:
        """What ``open_range`` must be told of this range besides its ends: something small to pickle."""
        return None

    def release(self, before: Sequence[int]) -> None:  # noqa: B027 - most keep nothing
        """Nothing before these positions will be read again."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Lets go of files, sockets and threads. No other call may follow."""


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
