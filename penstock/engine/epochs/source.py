"""A source that says where it stands: it reads by ranges, and puts an epoch mark between two of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from penstock.checkpoints.positions import PartitionProgress
from penstock.connectors.ranges import RangeReader, SourceRanges
from penstock.connectors.reader import Resume
from penstock.engine.turns.source import MARKER_EVERY_MS, Partition, SourceOperator
from penstock.memory.edges import START_OF_TIME, Epoch, Mark
from penstock.operators.run.base import Build


class RangedSource(SourceOperator):
    """Reads its share of a source's partitions from where a checkpoint says.

    ``request`` may be called from any thread; the epoch ends at the source's next turns, when the ranges that
    it has begun are read: positions within one mean nothing to a source.
    """

    def __init__(
        self,
        build: Build,
        batch: int | None = None,
        share: tuple[int, int] = (0, 1),
        marker_every_ms: int = MARKER_EVERY_MS,
    ) -> None:
        super().__init__(build, batch, share, marker_every_ms)
        self._readers: list[RangeReader] = []
        self._wanted: tuple[int, bool] | None = None  # the epoch to end, and whether it is the last
        self.tell: Callable[[int], None] = lambda epoch: None  # told of each epoch that has ended here

    def begin(self, ranges: SourceRanges, before: dict[int, PartitionProgress]) -> None:
        """Opens its partitions, called instead of ``open``."""
        layout = self.prepare()
        first, step = self._share
        for number, stands in sorted(before.items()):
            if number % step == first:
                start = Resume(stands.position, stands.offset, stands.records)
                reader = RangeReader(ranges, number, start, layout, self.strings, finished=stands.finished)
                latest_us = START_OF_TIME if stands.latest_us is None else stands.latest_us
                self._readers.append(reader)
                self._partitions.append(Partition(reader, latest_us))

    def open(self) -> None:
        """It is open already."""

    def request(self, epoch: int, *, last: bool) -> None:
        """The epoch is to end; after the ``last`` one nothing more is read."""
        self._wanted = (epoch, last)

    def stands(self) -> dict[int, PartitionProgress]:
        """How far each partition has come."""
        told: dict[int, PartitionProgress] = {}
        for partition, reader in zip(self._partitions, self._readers, strict=True):
            at, latest_us = reader.stands, partition.latest_us
            known = None if latest_us == START_OF_TIME else latest_us
            told[reader.partition] = PartitionProgress(
                at.position, at.offset, at.records, known, reader.finished
            )
        return told

    def available(self, now_ns: int) -> int:
        if self._wanted is not None and not self.finished:
            return max(1, super().available(now_ns))
        return super().available(now_ns)

    def read(self, limit: int, outbox: deque[Mark]) -> int:
        wanted = self._wanted
        if wanted is None:
            return super().read(limit, outbox)
        for reader in self._readers:
            reader.holds = True
        taken = super().read(limit, outbox)
        if self.finished or not all(reader.between for reader in self._readers):
            return taken
        self._wanted = None
        epoch, last = wanted
        outbox.append(Epoch(epoch, self._watermark))
        self.tell(epoch)
        if last:
            self._finish(outbox, complete=False)
        for reader in self._readers:
            reader.holds = last
        return taken
