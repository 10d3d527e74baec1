"""Events that lie in memory: columns, an Arrow table, a data frame, or rows."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.connectors.buffered import BufferedReader
from penstock.connectors.memory.column_data import arrow_columns, check_columns, inferred_schema
from penstock.connectors.offsets import OffsetPositions
from penstock.connectors.paced import PacedReader, begun_pace
from penstock.connectors.pacing import Pace, Rate
from penstock.connectors.reader import ENDLESS, NodeSource, Positions, Reader, Resume, visible_arrays
from penstock.connectors.shipping import LARGE_BYTES, MappedColumns
from penstock.memory.arrow import ArrowArray, numpy_from_arrow
from penstock.memory.layout import Columns as Arrays
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.types import DataType, Field, Schema

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

ColumnData = Mapping[str, "NDArray[Any] | Sequence[Any]"]
_BATCH_ROWS = 65_536


class Columns(NodeSource):
    """Columns in memory: a dict of numpy arrays or lists, an Arrow table, a pandas or Polars data frame.

    Types come from the data unless ``schema`` says otherwise; a column has nulls if it holds ``None``.
    ``repeat`` plays the data that many times (None: for ever), with the same event times each time.
    Partitions take turns by row. ``rate`` paces all partitions together, in events per second. Replayable:
    reading again gives the same events.

    >>> Columns({"ts": [0, 1_000_000], "speed": [1.5, None]}, {"ts": "timestamp", "speed": "float64?"}).schema
    Schema(ts: timestamp, speed: float64?)
    """

    def __init__(
        self,
        data: ColumnData | pa.Table | pd.DataFrame | pl.DataFrame,
        schema: Schema | Mapping[str, str | DataType] | None = None,
        *,
        repeat: int | None = 1,
        partitions: int = 1,
        ordered: bool = False,
        rate: Rate | None = None,
    ) -> None:
        wanted = None if schema is None else Schema.of(schema)
        if partitions < 1:
            raise QueryError("partitions must be positive", detail=f"got {partitions}", hint="write e.g. 2")
        if repeat is not None and repeat < 0:
            raise QueryError(
                "repeat must not be negative", detail=f"got {repeat}", hint="None repeats for ever"
            )
        if rate is not None:
            Pace(rate, partitions)  # a wrong rate fails here
        self._data: dict[str, ArrowArray] | MappedColumns = (arrays := arrow_columns(data, wanted))
        self._schema = wanted or inferred_schema(arrays)
        self._rows = len(next(iter(arrays.values()))) if arrays else 0
        self._repeat, self._partitions, self._ordered, self._rate = repeat, partitions, ordered, rate
        self._key: tuple[Any, ...] | None = None  # of the source that this one was shipped from
        check_columns(arrays, self._schema, self._rows)

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def ordered(self) -> bool:
        return self._ordered

    @property
    def bounded(self) -> bool:
        return self._repeat is not None or self._rows == 0

    @property
    def partitions(self) -> int:
        return self._partitions

    def key(self) -> tuple[Any, ...]:
        return self._key or super().key()

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        arrays = [array for field in layout.visible for array in self._numpy(field, strings)]
        readers: list[Reader] = []
        for partition in range(self._partitions):
            part = tuple(array[partition :: self._partitions] for array in arrays)
            pace = None if self._rate is None else Pace(self._rate, self._partitions)
            rows, total = self._rows_in(partition), self._total(partition)
            readers.append(_ColumnsReader(partition, layout, part, rows, total, pace))
        return readers

    def positions(self, journal: str | None = None, start: Sequence[int] | None = None) -> Positions:
        totals = [self._total(partition) for partition in range(self._partitions)]
        return OffsetPositions(totals, self._rate, start, event_bytes=self._event_bytes())

    def open_range(
        self,
        partition: int,
        resume: Resume,
        end: int,
        layout: Layout,
        strings: StringPool,
        hint: Any = None,
    ) -> Reader:
        begun = begun_pace(self._rate, self._partitions, hint)
        rows, start = self._rows_in(partition), resume.position
        if end - start < rows:  # a part of the columns: no more than that is converted
            return _ColumnsRange(self, partition, layout, strings, start, end, begun)
        arrays = [array for field in layout.visible for array in self._numpy(field, strings)]
        part = tuple(array[partition :: self._partitions] for array in arrays)
        return _ColumnsReader(partition, layout, part, rows, end, None, start, begun)

    def shipped(self, folder: str) -> NodeSource:
        if isinstance(self._data, MappedColumns) or sum(a.nbytes for a in self._data.values()) < LARGE_BYTES:
            return self
        other = copy.copy(self)
        other._data, other._key = MappedColumns.written(self._data, folder), self.key()
        return other

    def _event_bytes(self) -> int | None:
        return None if self._rows == 0 else -(-sum(a.nbytes for a in self._arrays.values()) // self._rows)

    @property
    def _arrays(self) -> Mapping[str, ArrowArray]:
        return self._data.arrays if isinstance(self._data, MappedColumns) else self._data

    def _rows_in(self, partition: int) -> int:
        return len(range(partition, self._rows, self._partitions))

    def _total(self, partition: int) -> int:
        rows = self._rows_in(partition)
        return ENDLESS if self._repeat is None and rows else rows * (self._repeat or 0)

    def _numpy(self, field: Field, strings: StringPool, rows: slice | None = None) -> list[NDArray[Any]]:
        """A column, and its mask if it may have nulls; of some rows only, if they are given."""
        array = self._arrays[field.name]
        if rows is not None:
            array = array.slice(rows.start, rows.stop - rows.start)
            if rows.step > 1:
                array = array.take(pa.array(np.arange(0, len(array), rows.step)))
        data, nulls = numpy_from_arrow(array, field, strings)
        if not field.nullable:
            return [data]
        return [data, np.zeros(len(data), np.bool_) if nulls is None else nulls]


class Rows(Columns):
    """Rows in memory, as dicts; a missing key is a null. For tests and small examples.

    >>> Rows([{"ts": 5, "lane": "a"}], {"ts": "timestamp", "lane": "string"}).schema
    Schema(ts: timestamp, lane: string)
    """

    def __init__(
        self,
        rows: Iterable[Mapping[str, Any]],
        schema: Schema | Mapping[str, str | DataType] | None = None,
        *,
        repeat: int | None = 1,
        partitions: int = 1,
        ordered: bool = False,
        rate: Rate | None = None,
    ) -> None:
        listed = list(rows)
        names = (
            dict.fromkeys(name for row in listed for name in row)
            if schema is None
            else Schema.of(schema).names
        )
        data = {name: [row.get(name) for row in listed] for name in names}
        super().__init__(data, schema, repeat=repeat, partitions=partitions, ordered=ordered, rate=rate)


class _ColumnsReader(PacedReader):
    def __init__(
        self,
        partition: int,
        layout: Layout,
        arrays: Arrays,
        rows: int,
        total: int,
        pace: Pace | None,
        start: int = 0,
        begun: Pace | None = None,
    ) -> None:
        super().__init__(partition, total, pace, start, begun)
        self._targets = visible_arrays(layout)
        self._arrays = arrays
        self._rows = rows

    def read(self, columns: Arrays, start: int, limit: int) -> int:
        wanted = min(limit, self._due - self.offset)
        written = 0
        while written < wanted:
            position = self.offset % self._rows
            count = min(wanted - written, self._rows - position)
            first = start + written
            for place, source in zip(self._targets, self._arrays, strict=True):
                columns[place][first : first + count] = source[position : position + count]
            written += count
            self.offset += count
        return written


class _ColumnsRange(BufferedReader):
    """Some of a partition's events; converts a batch of them at a time."""

    def __init__(
        self,
        source: Columns,
        partition: int,
        layout: Layout,
        strings: StringPool,
        start: int,
        end: int,
        begun: Pace | None,
    ) -> None:
        super().__init__(layout, partition)
        self._share = partition  # of the source's rows
        self._source, self._layout, self._strings = source, layout, strings
        self.offset, self._end, self._came_at = start, end, begun

    @property
    def records(self) -> int:
        return self.offset

    def available(self, now_ns: int) -> int:
        return self._end - self.offset

    @property
    def finished(self) -> bool:
        return self.offset >= self._end

    def created_ns(self) -> int | None:
        return None if self._came_at is None or self.offset == 0 else self._came_at.when(self.offset)

    def refill(self) -> None:
        rows, step = self._source._rows_in(self._share), self._source.partitions
        position = self.offset % rows
        count = min(_BATCH_ROWS, self._end - self.offset, rows - position)
        if count > 0:
            first = position * step + self._share
            chosen = slice(first, first + (count - 1) * step + 1, step)
            fields = self._layout.visible
            arrays = [array for f in fields for array in self._source._numpy(f, self._strings, chosen)]
            self.hold(tuple(arrays), count)
