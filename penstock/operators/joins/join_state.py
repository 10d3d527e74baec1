"""One side of a symmetric hash join: the events that may still find partners, chained by key and time.

An event is stored on its own side and then matched with the other side, so every pair is found exactly once:
when the second of the two arrives. A chain holds the events of one key in one *bucket*, a fixed stretch of
event time; matching looks only at the buckets in reach, and the watermark frees whole buckets.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from penstock.compiled.fixed import kernel_of
from penstock.memory.layout import Columns, Layout
from penstock.operators.joins.join_kernels import (
    CHAIN_END,
    DEAD,
    NOT_STARTED,
    Ints,
    link,
    owners_of,
    unlink,
)
from penstock.query.types import DataType, Field
from penstock.state.keys import Words
from penstock.state.rows import RowStore
from penstock.state.table import KeyTable

_NEXT = "$next"  # the row behind this one in its chain, or CHAIN_END, or DEAD

_COMPACTED_FROM = 256  # dead rows below which moving the others together does not pay


class JoinSide:
    """The stored events of one input, with the columns ``names`` of its layout.

    ``width`` words make a key, the last of which is the number of the bucket.
    """

    def __init__(self, layout: Layout, names: Iterable[str], width: int) -> None:
        assert layout.time is not None, "the plan gives a join's inputs their event time"
        kept = dict.fromkeys([*names, layout.time])
        self.layout = Layout([*(layout.field(name) for name in kept), Field(_NEXT, DataType.INT64)])
        self.store = RowStore(self.layout, layout)
        self.table = KeyTable(width)
        self.heads: Ints = np.full(self.table.capacity, CHAIN_END, np.int64)  # by entry: the newest row
        self.time = self.layout.data(layout.time)
        self._next = self.layout.data(_NEXT)
        self._buckets: list[int] = []  # a heap of those in use
        self._entries: dict[int, list[Ints]] = {}  # by bucket: the entries of the table that are in it
        self.first_bucket = 0  # every stored event is in [first_bucket, last_bucket]
        self.last_bucket = NOT_STARTED
        self._dead = 0
        self._link = kernel_of(link)

    def __len__(self) -> int:
        """Events that are stored and not evicted."""
        return self.store.count - self._dead

    @property
    def times(self) -> Ints:
        return self.store.arrays[self.time]

    @property
    def nexts(self) -> Ints:
        return self.store.arrays[self._next]

    def add(self, columns: Columns, start: int, stop: int, rows: NDArray[np.intp] | None, keys: Words) -> int:
        """Stores these rows of columns, with their keys; returns the number of the first one's row."""
        first = self.store.count
        self.store.append(columns, start, stop, rows, (np.full(len(keys), CHAIN_END, np.int64),))
        self._chain(first, keys)
        return first

    def _chain(self, first: int, keys: Words) -> None:
        created = np.empty(len(keys), np.int64)
        progress = np.zeros(2, np.int64)  # rows linked, entries created
        while not self._link(self.table.arrays, keys, first, self.heads, self.nexts, created, progress):
            self.table.grow()
            longer = np.full(self.table.capacity, CHAIN_END, np.int64)
            longer[: len(self.heads)] = self.heads
            self.heads = longer
        self._note_buckets(created[: progress[1]])

    def _note_buckets(self, created: Ints) -> None:
        if not len(created):
            return
        buckets = self.table.words[created, -1]
        order = np.argsort(buckets, kind="stable")
        distinct, starts = np.unique(buckets[order], return_index=True)
        for bucket, entries in zip(distinct.tolist(), np.split(created[order], starts[1:]), strict=True):
            if bucket not in self._entries:
                self._entries[bucket] = []
                heappush(self._buckets, bucket)
            self._entries[bucket].append(entries)
        self.first_bucket = self._buckets[0]
        self.last_bucket = max(self.last_bucket, int(distinct[-1]))

    def evict(self, before_bucket: int | None) -> None:
        """Frees all events in buckets below that one; None frees everything."""
        while self._buckets and (before_bucket is None or self._buckets[0] < before_bucket):
            for entries in self._entries.pop(heappop(self._buckets)):
                self._dead += unlink(entries, self.heads, self.nexts)
                self.table.remove(entries)
        if self._buckets:
            self.first_bucket = self._buckets[0]
        else:
            self.first_bucket, self.last_bucket = 0, NOT_STARTED
        if self._dead >= _COMPACTED_FROM and 2 * self._dead >= self.store.count:
            self._compact()

    def _compact(self) -> None:
        """Moves the living rows together. A chain lives or dies as a whole: no link leads to the dead."""
        alive = self.nexts[: self.store.count] != DEAD
        # One longer, so that number -1, the end of a chain, maps to itself.
        renumbered = np.append(np.cumsum(alive) - 1, CHAIN_END)
        self.store.keep(alive)
        self._dead = 0
        nexts = self.nexts[: self.store.count]
        nexts[:] = renumbered[nexts]
        self.heads[: self.table.size] = renumbered[self.heads[: self.table.size]]

    @property
    def kept_fields(self) -> tuple[Field, ...]:
        """What is kept of an event."""
        return self.layout.fields[:-1]  # all but the chain

    def rows(self) -> tuple[Columns, Words]:
        """Copies of the stored events, oldest first: the columns of ``kept_fields``, and the keys' words."""
        entries = self.table.entries.astype(np.int64)
        owners: Ints = np.full(self.store.count, DEAD, np.int64)
        owners_of(entries, self.heads, self.nexts, owners)
        alive = np.flatnonzero(owners != DEAD)
        return self.store.gather(alive)[:-1], self.table.words[owners[alive], :-1]

    def restore(self, columns: Columns, keys: Words) -> None:
        """Stores events that ``rows`` gave, with their keys and buckets."""
        first = self.store.count
        self.store.extend((*columns, np.full(len(keys), CHAIN_END, np.int64)))
        self._chain(first, keys)

    def clear(self) -> None:
        """Forgets all events."""
        self.store.clear()
        self.table.clear()
        self.heads = np.full(self.table.capacity, CHAIN_END, np.int64)
        self._buckets.clear()
        self._entries.clear()
        self.first_bucket, self.last_bucket = 0, NOT_STARTED
        self._dead = 0

    @property
    def buckets(self) -> list[int]:
        """The buckets in use, in no order."""
        return self._buckets

    @property
    def bytes(self) -> int:
        return self.store.nbytes + self.table.nbytes + self.heads.nbytes + 8 * len(self.table)
