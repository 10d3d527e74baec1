"""Events made by a function of their offset, paced or as fast as they are read."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from penstock.connectors.offsets import OffsetPositions
from penstock.connectors.paced import PacedReader, begun_pace
from penstock.connectors.pacing import Pace, Rate
from penstock.connectors.reader import ENDLESS, NodeSource, Positions, Reader, Resume
from penstock.connectors.shipping import StoredObject
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError, RunError
from penstock.query.types import DataType, Schema

#: ``fill(offset, n, columns, start)`` writes the events [offset, offset + n) into ``columns[name][start:start
#: + n]``.
Fill = Callable[[int, int, dict[str, NDArray[Any]], int], None]

#: Events that a partition holds in one piece.
STRIPE = 65_536


class Generator(NodeSource):
    """Events that ``fill`` writes straight into blocks.

    A string column receives int32 indices into ``vocabulary[name]``; a nullable column ``x`` has its null
    mask under ``"x?"``, False unless ``fill`` sets it. ``fill`` must depend on nothing but the offset: then
    the source is replayable. ``rate`` is in events per second, or steps of (seconds, rate); nothing is read
    before it is due. Partitions take turns by stretches of 65,536 events and can be read side by side; then
    ``fill`` must be safe to call from several threads.

    >>> def fill(offset, n, columns, start):
    ...     columns["ts"][start : start + n] = np.arange(offset, offset + n)
    >>> Generator(fill, {"ts": "timestamp"}, limit=1_000).bounded
    True
    """

    def __init__(
        self,
        fill: Fill,
        schema: Schema | Mapping[str, str | DataType],
        *,
        limit: int | None = None,
        rate: Rate | None = None,
        ordered: bool = True,
        vocabulary: Mapping[str, Sequence[str]] | None = None,
        partitions: int = 1,
    ) -> None:
        if partitions < 1:
            raise QueryError("partitions must be positive", detail=f"got {partitions}", hint="write e.g. 2")
        words = {name: tuple(texts) for name, texts in (vocabulary or {}).items()}
        self._made_with: _MadeWith | StoredObject[_MadeWith] = _MadeWith(fill, words)
        self._partitions = partitions
        self._schema = Schema.of(schema)
        self._limit, self._rate, self._ordered = limit, rate, ordered
        if limit is not None and limit < 0:
            raise QueryError(
                "limit must not be negative", detail=f"got {limit}", hint="None makes events for ever"
            )
        if rate is not None:
            Pace(rate, partitions)  # a wrong rate fails here
        self._key: tuple[Any, ...] | None = None  # of the source that this one was shipped from
        for field in self._schema:
            if field.dtype is DataType.STRING and not words.get(field.name):
                raise QueryError(
                    f"string column '{field.name}' has no vocabulary",
                    hint=f"give vocabulary={{'{field.name}': [...]}}; the function writes indices into it",
                )

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def ordered(self) -> bool:
        return self._ordered

    @property
    def bounded(self) -> bool:
        return self._limit is not None

    @property
    def partitions(self) -> int:
        return self._partitions

    def key(self) -> tuple[Any, ...]:
        return self._key or super().key()

    @property
    def made_with(self) -> _MadeWith:
        """The function and its vocabulary; loaded once per process, if they were shipped in a file."""
        stored = self._made_with
        return stored.value if isinstance(stored, StoredObject) else stored

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        readers: list[Reader] = []
        for partition in range(self._partitions):
            stripes = Stripes(partition, self._partitions)
            pace = None if self._rate is None else Pace(self._rate, self._partitions)
            readers.append(_GeneratorReader(self, stripes, layout, strings, self._total(partition), pace))
        return readers

    def warm_up(self) -> None:
        self._try(0)

    def _try(self, offset: int) -> None:
        """Makes the event at this offset, if there is one, for nobody."""
        if self._limit is not None and offset >= self._limit:
            return
        columns: dict[str, NDArray[Any]] = {}
        for field in self._schema:
            columns[field.name] = np.zeros(1, field.dtype.numpy)
            if field.nullable:
                columns[f"{field.name}?"] = np.zeros(1, np.bool_)
        self.made_with.fill(offset, 1, columns, 0)

    def positions(self, journal: str | None = None, start: Sequence[int] | None = None) -> Positions:
        totals = [self._total(partition) for partition in range(self._partitions)]
        return OffsetPositions(totals, self._rate, start)

    def open_range(
        self,
        partition: int,
        resume: Resume,
        end: int,
        layout: Layout,
        strings: StringPool,
        hint: Any = None,
    ) -> Reader:
        stripes = Stripes(partition, self._partitions)
        begun = begun_pace(self._rate, self._partitions, hint)
        return _GeneratorReader(self, stripes, layout, strings, end, None, resume.position, begun)

    def shipped(self, folder: str) -> NodeSource:
        if isinstance(self._made_with, StoredObject):
            return self
        stored = StoredObject.of(self._made_with, folder)
        if stored is None:
            return self
        other = copy.copy(self)
        other._made_with, other._key = stored, self.key()
        return other

    def _total(self, partition: int) -> int:
        if self._limit is None:
            return ENDLESS
        return Stripes(partition, self._partitions).count_below(self._limit)


@dataclass(frozen=True)
class _MadeWith:
    fill: Fill
    vocabulary: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Stripes:
    """Which events of the whole stream one partition holds: every so-manieth stretch of ``STRIPE`` events.

    >>> [Stripes(1, 2).place(offset)[0] for offset in (0, STRIPE - 1, STRIPE)]
    [65536, 131071, 196608]
    """

    partition: int
    partitions: int

    def place(self, offset: int) -> tuple[int, int]:
        """Where its event stands in the whole stream, and how many follow there in one piece."""
        if self.partitions == 1:
            return offset, ENDLESS
        stripe, within = divmod(offset, STRIPE)
        return (stripe * self.partitions + self.partition) * STRIPE + within, STRIPE - within

    def count_below(self, limit: int) -> int:
        """How many of the whole stream's first ``limit`` events the partition holds."""
        if self.partitions == 1:
            return limit
        rounds, rest = divmod(limit, STRIPE * self.partitions)
        return rounds * STRIPE + min(STRIPE, max(0, rest - self.partition * STRIPE))


# Looked up once per run, not once per range. Codes never change; the words are kept so that their id stays
# theirs.
_known_codes: WeakKeyDictionary[StringPool, dict[int, tuple[tuple[str, ...], NDArray[np.int32]]]] = (
    WeakKeyDictionary()
)


def _codes(words: tuple[str, ...], strings: StringPool) -> NDArray[np.int32]:
    known = _known_codes.setdefault(strings, {})
    if id(words) not in known:
        known[id(words)] = words, strings.codes(words)
    return known[id(words)][1]


class _GeneratorReader(PacedReader):
    def __init__(
        self,
        source: Generator,
        stripes: Stripes,
        layout: Layout,
        strings: StringPool,
        total: int,
        pace: Pace | None,
        start: int = 0,
        begun: Pace | None = None,
    ) -> None:
        super().__init__(stripes.partition, total, pace, start, begun)
        made_with = source.made_with
        self._fill = made_with.fill
        self._stripes = stripes
        # name → its place in a block's columns; masks under "name?".
        self._places: dict[str, int] = {}
        # Masks and nullable columns: whatever the function leaves out is not null, and 0.
        self._cleared: list[int] = []
        # Columns that nobody reads: the function writes them all the same, into arrays of their own.
        self._unread: dict[str, np.dtype[Any]] = {}
        self._scratch: dict[str, NDArray[Any]] = {}
        self._codes: list[tuple[str, int, NDArray[np.int32]]] = []
        for field in source.schema:
            if field.name not in layout:
                self._unread[field.name] = field.dtype.numpy
                if field.nullable:
                    self._unread[f"{field.name}?"] = np.dtype(np.bool_)
                continue
            self._places[field.name] = place = layout.data(field.name)
            mask = layout.nulls(field.name)
            if mask is not None:
                self._places[f"{field.name}?"] = mask
                self._cleared += [mask, place]
            if field.dtype is DataType.STRING:
                self._codes.append((field.name, place, _codes(made_with.vocabulary[field.name], strings)))

    def read(self, columns: Columns, start: int, limit: int) -> int:
        offset, in_one_piece = self._stripes.place(self.offset)
        count = min(limit, self._due - self.offset, in_one_piece)
        if count <= 0:
            return 0
        stop = start + count
        named = dict(self._scratch_until(max([stop, *(array.size for array in columns[:1])])))
        for name, place in self._places.items():
            named[name] = columns[place]
        for place in self._cleared:
            columns[place][start:stop] = 0
        self._fill(offset, count, named, start)
        for name, place, codes in self._codes:
            indices = columns[place][start:stop]
            try:
                np.take(codes, indices, out=indices)
            except IndexError:
                raise RunError(
                    f"string index outside the vocabulary: column '{name}' got {indices.max()}, "
                    f"its vocabulary has {len(codes)} strings"
                ) from None
        self.offset += count
        return count

    def _scratch_until(self, stop: int) -> dict[str, NDArray[Any]]:
        if self._unread and (not self._scratch or len(next(iter(self._scratch.values()))) < stop):
            self._scratch = {name: np.zeros(stop, dtype) for name, dtype in self._unread.items()}
        return self._scratch
