"""Reads one partition of a topic, from an offset to another or for ever."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from penstock.connectors.buffered import BufferedReader
from penstock.connectors.kafka.feed import KafkaFeed
from penstock.connectors.kafka.records import RecordParser
from penstock.connectors.reader import ENDLESS, Resume
from penstock.memory.layout import Layout
from penstock.query.errors import RunError

_POLL_NS = 1_000_000
_AT_ONCE = 4_096  # records decoded together
_WAIT_S = 0.2  # for records that are known to be there, before looking at the clock again


class KafkaReader(BufferedReader):
    """The records of a partition in [start, end). A bad record's number is its offset in Kafka.

    ``patience_s``: the records are all there, and ``read`` waits for the broker for so long; None: it never
    waits. ``close`` is called instead of closing the feed.
    """

    def __init__(
        self,
        feed: KafkaFeed,
        parser: RecordParser,
        layout: Layout,
        partition: int,
        start: int,
        end: int = ENDLESS,
        resume: Resume | None = None,
        patience_s: float | None = None,
        close: Callable[[KafkaReader], None] | None = None,
    ) -> None:
        super().__init__(layout, partition, resume)
        self._feed, self._parser = feed, parser
        self._close = close
        self._next, self._end = start, end  # offsets in Kafka: of the next record to decode, behind the last
        self._started = feed.reads(partition)
        self._patience_s = patience_s
        self._polled_ns: int | None = None
        self._offsets: NDArray[np.int64] = np.empty(0, np.int64)  # offsets in Kafka of what is in the buffer

    @property
    def position(self) -> int:
        """The offset in Kafka from which a reader would go on behind the last event read."""
        return int(self._offsets[self._position]) if self.buffered else self._next

    @property
    def next_offset(self) -> int:
        """The offset in Kafka of the next record that is not decoded."""
        return self._next

    def available(self, now_ns: int) -> int:
        if self.buffered:
            return self.buffered
        self._polled_ns = now_ns
        if self._patience_s is not None:
            return 0 if self.finished else 1
        if self._at_end:
            return 1 if self._bad else 0
        self._poll(0.0)
        waiting = self._feed.waiting(self.partition)
        # The lag, where a record is at hand: what waits with the broker waits as well.
        return max(waiting, min(self._feed.high(self.partition), self._end) - self._next) if waiting else 0

    @property
    def finished(self) -> bool:
        # Not before the bad records are taken: the last one may have been found without a read.
        return self._at_end and not (self.buffered or self._bad)

    def refill(self) -> None:
        if self._at_end:
            return
        if self._patience_s is not None:
            self._wait(self._patience_s)
        records = self._feed.take(self.partition, _AT_ONCE)
        if records and records[-1].offset() >= self._end:
            count = bisect_left([record.offset() for record in records], self._end)
            self._feed.give_back(self.partition, records[count:])
            records = records[:count]
            self._next = self._end
        if not records:
            return
        events = self._parser.parse(records)
        offsets = np.array([record.offset() for record in records], np.int64)
        for bad in events.bad:
            self.reject(int(offsets[bad.record]), bad.text, bad.reason)
        self._offsets = offsets if events.places is None else offsets[events.places]
        self._next = max(self._next, int(offsets[-1]) + 1)
        self.hold(events.columns, events.count, len(records))

    def next_due_ns(self) -> int | None:
        return None if self._polled_ns is None or self._at_end else self._polled_ns + _POLL_NS

    def close(self) -> None:
        if self._close is None:
            self._feed.close()
        else:
            self._close(self)

    @property
    def _at_end(self) -> bool:
        """No record before the end is still to be decoded. Behind the last one there may be offsets without a
        record, as transactions leave them; then the client says that it has come to the end."""
        if self._next >= self._end:
            return True
        return (
            self._started
            and self._feed.ends.get(self.partition, -1) >= self._end
            and not self._feed.waiting(self.partition)
        )

    def _poll(self, seconds: float) -> None:
        if not self._started:
            self._feed.add(self.partition, self._next)
            self._started = True
        self._feed.poll(seconds)

    def _wait(self, patience_s: float) -> None:
        """Until there are records, or the end."""
        give_up_at = time.monotonic() + patience_s
        self._poll(0.0)
        while not self._feed.waiting(self.partition) and not self._at_end:
            if time.monotonic() > give_up_at:
                raise RunError(
                    f"partition {self.partition} gave no record from offset {self._next} on for "
                    f"{patience_s:g} s, and it has them up to {self._end}; {self._feed.trouble}"
                )
            self._poll(_WAIT_S)
