"""What a graph knows of its sources and sinks. The engines know the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from penstock.query.types import DataType, Field, Schema

#: A record that could not be read: which source and partition, where, what it said, and why it does not fit.
BAD_RECORD_SCHEMA = Schema(
    (
        Field("partition", DataType.INT32),
        Field("offset", DataType.INT64),
        Field("record", DataType.STRING),
        Field("reason", DataType.STRING),
    )
)


class Source(ABC):
    """Where events come from. Describes itself; a runtime opens it (``penstock.connectors``)."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The columns of every event."""

    def timed_by(self, event_time: str) -> Schema:
        """The columns of every event, once it is known which of them holds its time.

        A source that sets records without a time aside says here that the time is never null.
        """
        return self.schema

    @property
    def ordered(self) -> bool:
        """Whether each partition promises events in event-time order, so that none can be late."""
        return False

    @property
    def bounded(self) -> bool:
        """Whether it ends by itself."""
        return True

    @property
    def partitions(self) -> int:
        """How many partitions can be read side by side."""
        return 1

    def key(self) -> tuple[Any, ...]:
        """Two sources with the same key are the same stream and are read once."""
        return (type(self).__qualname__, id(self))


class Sink(ABC):
    """Where results go. Describes itself; a runtime opens it (``penstock.connectors``)."""

    @property
    @abstractmethod
    def guarantee(self) -> str:
        """What it promises after a failure and a restart, in a sentence."""

    @property
    def target(self) -> Path | None:
        """The file or folder that no other sink may write; None if it writes none of its own."""
        return None

    def unwritable(self) -> str | None:
        """Why nothing can be written where results are to go, as far as it can be seen beforehand."""
        return None
