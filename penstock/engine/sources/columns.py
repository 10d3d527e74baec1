"""Events that lie in memory: columns, an Arrow table, a data frame, or rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.sources.pacing import Pace, Rate
from penstock.engine.sources.reader import NodeSource, Reader, visible_arrays
from penstock.memory.arrow import ArrowArray, arrow_type, numpy_from_arrow, schema_from_arrow, type_fits
from penstock.memory.layout import Columns as Arrays
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError
from penstock.query.types import DataType, Field, Schema

if TYPE_CHECKING:
    import pandas as pd

ColumnData = Mapping[str, "NDArray[Any] | Sequence[Any]"]
_ENDLESS = 1 << 62


class Columns(NodeSource):
    """Columns in memory: a dict of numpy arrays or lists, an Arrow table, or a pandas data frame.

    Types come from the data unless ``schema`` says otherwise; a column has nulls if it holds ``None``.
    ``repeat`` plays the data that many times (None: for ever), with the same event times each time.
    Partitions take turns by row. ``rate`` paces all partitions together, in events per second. Replayable:
    reading again gives the same events.

    >>> Columns({"ts": [0, 1_000_000], "speed": [1.5, None]}, {"ts": "timestamp", "speed": "float64?"}).schema
    Schema(ts: timestamp, speed: float64?)
    """

    def __init__(
        self,
        data: ColumnData | pa.Table | pd.DataFrame,
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
        self._arrays = _arrow_columns(data, wanted)
        self._schema = wanted or _inferred(self._arrays)
        self._rows = len(next(iter(self._arrays.values()))) if self._arrays else 0
        self._repeat, self._partitions, self._ordered, self._rate = repeat, partitions, ordered, rate
        _check(self._arrays, self._schema, self._rows)

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

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        arrays: list[NDArray[Any]] = []
        for field in layout.visible:
            data, nulls = numpy_from_arrow(self._arrays[field.name], field, strings)
            arrays.append(data)
            if field.nullable:
                arrays.append(np.zeros(len(data), np.bool_) if nulls is None else nulls)
        readers: list[Reader] = []
        for partition in range(self._partitions):
            part = tuple(array[partition :: self._partitions] for array in arrays)
            rows = len(range(partition, self._rows, self._partitions))
            total = _ENDLESS if self._repeat is None and rows else rows * (self._repeat or 0)
            pace = None if self._rate is None else Pace(self._rate, self._partitions)
            readers.append(_ColumnsReader(partition, layout, part, rows, total, pace))
        return readers


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


class PacedReader(Reader):
    """A reader whose events are all there, or can be made at will, and that may be held back by a pace."""

    def __init__(self, partition: int, total: int, pace: Pace | None) -> None:
        super().__init__(partition)
        self._total = total
        self._pace = pace
        self._due = total if pace is None else 0  # events that may have been read by now

    def available(self, now_ns: int) -> int:
        if self._pace is not None:
            self._due = min(self._total, self._pace.due(now_ns))
        return self._due - self.offset

    @property
    def finished(self) -> bool:
        return self.offset >= self._total

    def created_ns(self) -> int | None:
        return None if self._pace is None or self.offset == 0 else self._pace.when(self.offset)

    def next_due_ns(self) -> int | None:
        return None if self._pace is None or self.finished else self._pace.when(self.offset + 1)


class _ColumnsReader(PacedReader):
    def __init__(
        self, partition: int, layout: Layout, arrays: Arrays, rows: int, total: int, pace: Pace | None
    ) -> None:
        super().__init__(partition, total, pace)
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


def _arrow_columns(data: Any, schema: Schema | None) -> dict[str, ArrowArray]:
    """Every column as one Arrow array; those the schema names are brought to its type."""
    if isinstance(data, pa.Table):
        columns: dict[str, Any] = {name: data.column(name) for name in data.column_names}
    elif isinstance(data, Mapping):
        columns = dict(data)
    elif hasattr(data, "columns") and hasattr(data, "dtypes"):
        return _arrow_columns(pa.Table.from_pandas(data, preserve_index=False), schema)
    else:
        raise QueryError(
            "columns must be a dict of arrays, an Arrow table or a data frame",
            detail=f"got {type(data).__name__}",
        )
    if schema is None:
        return {name: _arrow_array(name, values, None) for name, values in columns.items()}
    missing = [name for name in schema.names if name not in columns]
    if missing:
        raise QueryError(
            f"column '{missing[0]}' is in the schema but not in the data",
            hint=f"columns here: {', '.join(columns)}",
        )
    return {field.name: _arrow_array(field.name, columns[field.name], field) for field in schema}


def _arrow_array(name: str, values: Any, field: Field | None) -> ArrowArray:
    try:
        if isinstance(values, pa.ChunkedArray | pa.Array):
            array = values
        elif isinstance(values, np.ndarray) and values.dtype != np.dtype(object):
            array = pa.array(np.ascontiguousarray(values))
        else:
            array = pa.array(list(values), None if field is None else arrow_type(field.dtype))
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if field is not None and not type_fits(array.type, field):
            array = array.cast(arrow_type(field.dtype))
        return array
    except (
        pa.ArrowInvalid,
        pa.ArrowTypeError,
        pa.ArrowNotImplementedError,
        ValueError,
        TypeError,
        OverflowError,
    ) as error:
        wanted = f"{field.dtype}" if field is not None else "one type"
        raise QueryError(
            f"column '{name}' does not fit", detail=f"its values are not all {wanted}: {error}"
        ) from None


def _inferred(arrays: dict[str, ArrowArray]) -> Schema:
    for name, array in arrays.items():
        if pa.types.is_null(array.type):
            raise QueryError(
                f"cannot tell the type of column '{name}'", detail="it has no value", hint="give schema="
            )
    with_nulls = [name for name, array in arrays.items() if _null_count(array)]
    return schema_from_arrow(pa.schema([(name, array.type) for name, array in arrays.items()]), with_nulls)


def _check(arrays: dict[str, ArrowArray], schema: Schema, rows: int) -> None:
    for field in schema:
        array = arrays[field.name]
        if len(array) != rows:
            raise QueryError(
                "columns have different lengths",
                detail=f"'{schema.names[0]}' has {rows} rows, '{field.name}' has {len(array)}",
            )
        if _null_count(array) and not field.nullable:
            raise QueryError(
                f"column '{field.name}' has nulls", hint=f"write '{field.dtype}?' in the schema to allow them"
            )


def _null_count(array: ArrowArray) -> int:
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        array = array.dictionary_decode()
    return int(array.null_count)
