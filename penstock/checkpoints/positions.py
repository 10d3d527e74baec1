"""How far a run has come: the position and the largest event time of every source partition, the routing, and
the watermarks that follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.memory.edges import END_OF_TIME, START_OF_TIME


@dataclass(frozen=True)
class PartitionProgress:
    """One partition of a source, after some batch."""

    position: int = 0  # in the source's own unit
    offset: int = 0  # events before it
    records: int = 0  # records before it, good and bad
    latest_us: int | None = None  # the largest event time seen
    finished: bool = False  # nothing will come any more

    def and_then(self, other: PartitionProgress) -> PartitionProgress:
        """The furthest of both."""
        times = [t for t in (self.latest_us, other.latest_us) if t is not None]
        return PartitionProgress(
            max(self.position, other.position),
            max(self.offset, other.offset),
            max(self.records, other.records),
            max(times, default=None),
            self.finished or other.finished,
        )


#: By source, by partition.
Partitions = Mapping[str, Mapping[int, PartitionProgress]]


@dataclass(frozen=True)
class Progress:
    """What a batch starts from; each version of the state carries that of the next batch."""

    sources: Partitions
    routing: tuple[int, ...]  # the task of each virtual partition
    #: Per source, the watermark that operators have seen. What Spark alone has seen they learn a batch later.
    seen_us: Mapping[str, int] = field(default_factory=dict)
    complete: bool = False  # the input has ended and everything is closed
    batch_id: int = -1  # the batch that made it
    totals: Mapping[str, int] = field(default_factory=dict)  # since the first batch, for people
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # read of each source: their types
    #: Of each step with functions: by what they are known again; see ``penstock.query.function_versions``.
    functions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)  # what steps with state do, for people
    patterns: Mapping[str, Any] = field(default_factory=dict)  # by step: those of its set; see pattern_log
    marks: Mapping[str, str] = field(default_factory=dict)  # by source: by which its journal is known again

    #: Since the first epoch, by what is counted and by operator, where a runtime goes on counting.
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def tasks(self) -> int:
        return max(self.routing) + 1

    def advanced(self, moves: Iterable[Partitions]) -> Progress:
        """The same after tasks read on; the order of ``moves`` does not matter, and neither does it if the
        same is told twice. Several tasks may read one partition of a DataFrame: what lies furthest counts.
        """
        sources = {name: dict(partitions) for name, partitions in self.sources.items()}
        for move in moves:
            for name, partitions in move.items():
                known = sources[name]
                for number, partition in partitions.items():
                    known[number] = known[number].and_then(partition)
        return replace(self, sources=sources)

    def grown(self, partitions: Mapping[str, int]) -> Progress:
        """With so many partitions of each source. Time stays where it is: what is older in a new partition
        than the watermark allows is late, as it would be in those that were there."""
        sources = {name: dict(known) for name, known in self.sources.items()}
        for name, count in partitions.items():
            times = [partition.latest_us for partition in sources[name].values()]
            reached = [moment for moment in times if moment is not None]
            latest_us = min(reached) if len(reached) == len(times) and reached else None
            for number in range(len(times), count):
                sources[name][number] = PartitionProgress(latest_us=latest_us)
        return replace(self, sources=sources)

    def watermark_us(self, source: str, lateness_us: int) -> int:
        """The least over the source's partitions of (largest event time − lateness); those that have
        finished no longer count."""
        latest: list[int] = []
        for partition in self.sources[source].values():
            if not partition.finished:
                if partition.latest_us is None:
                    return START_OF_TIME
                latest.append(partition.latest_us)
        if not latest:
            return END_OF_TIME - 1  # the end itself is told apart: after it nothing is used again
        return max(min(latest) - lateness_us, START_OF_TIME + 1)

    def to_json(self) -> dict[str, Any]:
        body = asdict(self)
        body["sources"] = {name: moves_to_json({name: p})[name] for name, p in self.sources.items()}
        body["routing"] = list(self.routing)
        if not self.patterns:
            del body["patterns"]
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Progress:
        return cls(**{**body, "sources": moves_from_json(body["sources"]), "routing": tuple(body["routing"])})


def moves_to_json(moves: Partitions) -> dict[str, Any]:
    return {
        name: {str(number): list(asdict(partition).values()) for number, partition in partitions.items()}
        for name, partitions in moves.items()
    }


def moves_from_json(body: Mapping[str, Any]) -> dict[str, dict[int, PartitionProgress]]:
    return {
        name: {int(number): PartitionProgress(*values) for number, values in partitions.items()}
        for name, partitions in body.items()
    }
