"""Messages between tasks: few rows with much in each, so that Spark has little to move and to schedule.

A message is (target task, channel, sequence number, payload). Payloads are Arrow record batches whose schema
both ends know from the channel, or Arrow streams, or JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.memory.arrow import ArrowArray, arrow_schema, arrow_type, numpy_from_arrow
from penstock.memory.layout import Columns, Layout
from penstock.memory.strings import StringPool
from penstock.query.types import DataType, Field
from penstock.spark.batches.results import Place, opened
from penstock.state.tables import HASH, StateTables, flat_array

_FIELDS: list[tuple[str, pa.DataType]] = [
    ("target", pa.int32()),
    ("tag", pa.int32()),
    ("seq", pa.int64()),
    ("payload", pa.binary()),
]
SCHEMA = pa.schema(_FIELDS)
#: The same for Spark.
SPARK_SCHEMA = "target int, tag int, seq bigint, payload binary"

_TABLE = b"penstock.table"
_OWNER = "$owner"
_WRITE = pa.ipc.IpcWriteOptions(unify_dictionaries=True)


class Message(NamedTuple):
    target: int
    tag: int
    seq: int
    payload: Any  # bytes, a buffer of Arrow, or the place where they stand


def to_batch(messages: Sequence[Message]) -> pa.RecordBatch:
    """Messages as Spark takes them. One whose payload stands elsewhere has its tag turned round."""
    tags = [~message.tag if isinstance(message.payload, Place) else message.tag for message in messages]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([message.target for message in messages], pa.int32()),
            pa.array(tags, pa.int32()),
            pa.array([message.seq for message in messages], pa.int64()),
            pa.array([_bytes(message.payload) for message in messages], pa.binary()),
        ],
        schema=SCHEMA,
    )


def from_batches(batches: Iterable[pa.RecordBatch]) -> list[Message]:
    """Messages as Spark gives them, in the order of their sequence numbers.

    The order in which a shuffle delivers is not defined; this one is, so that a batch that is computed again
    feeds its operators in the same order.
    """
    found: list[Message] = []
    for batch in batches:
        target, tag, seq = (batch.column(place).to_pylist() for place in range(3))
        payloads: Any = batch.column(3)
        for to, number, place, payload in zip(target, tag, seq, payloads, strict=True):
            assert to is not None
            assert number is not None
            assert place is not None
            buffer = payload.as_buffer()
            if number < 0:
                found.append(Message(to, ~number, place, Place.from_bytes(buffer.to_pybytes())))
            else:
                found.append(Message(to, number, place, buffer))
    found.sort(key=lambda message: (message.seq, message.tag))
    return found


def as_json(payload: Any) -> Any:
    return json.loads(_bytes(payload))


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _bytes(payload: Any) -> bytes:
    if isinstance(payload, Place):
        return payload.to_bytes()
    return payload if isinstance(payload, bytes) else payload.to_pybytes()


# -- rows ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowFormat:
    """Events of one layout as record batches: all columns, or the user's alone."""

    layout: Layout
    fields: tuple[Field, ...]
    schema: pa.Schema

    @classmethod
    def of(cls, layout: Layout, *, visible: bool = False) -> RowFormat:
        fields = tuple(layout.visible) if visible else layout.fields
        return cls(layout, fields, arrow_schema(fields))

    def batch(self, columns: Columns, strings: StringPool) -> pa.RecordBatch:
        """Whole columns as a batch; it may share their memory."""
        arrays: list[ArrowArray] = []
        for field in self.fields:
            data = columns[self.layout.data(field.name)]
            place = self.layout.nulls(field.name)
            nulls = None if place is None else columns[place]
            if field.dtype is DataType.STRING:
                arrays.append(strings.decode(data, nulls))
            elif nulls is None and field.dtype is not DataType.BOOL:
                arrays.append(flat_array(data, arrow_type(field.dtype)))
            else:
                array: ArrowArray = pa.array(data, mask=nulls)
                arrays.append(
                    array.cast(arrow_type(field.dtype)) if field.dtype is DataType.TIMESTAMP else array
                )
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def read(self, payload: Any) -> pa.RecordBatch:
        """The batch in a message."""
        return pa.ipc.read_record_batch(opened(payload), self.schema)

    def columns(self, batch: pa.RecordBatch, strings: StringPool) -> Columns:
        """The columns of a batch, in the layout's order; they may share its memory."""
        columns: list[NDArray[Any]] = []
        for place, field in enumerate(self.fields):
            data, nulls = numpy_from_arrow(batch.column(place), field, strings)
            columns.append(data)
            if field.nullable:
                columns.append(np.zeros(len(data), np.bool_) if nulls is None else nulls)
        return tuple(columns)


# -- partial states ------------------------------------------------------------------------------------------


def pack_states(
    states: Mapping[int, StateTables],
    routes: Mapping[int, int],
    owners: NDArray[np.int32],
    counted: NDArray[np.int64] | None = None,
) -> Iterator[tuple[int, pa.Buffer]]:
    """State tables by operator number, as (target, payload): one payload per target and schema.

    Queries that differ in constants have tables of the same schema, so their number hardly matters.
    ``routes`` has the one hash of operators without keys, ``owners`` the task of each virtual partition;
    ``counted`` is added the rows of each partition.
    """
    alike: dict[tuple[str, pa.Schema], list[tuple[int, pa.Table]]] = {}
    for number, tables in states.items():
        for name, table in tables.items():
            alike.setdefault((name, table.schema), []).append((number, table))
    for (name, _), found in alike.items():
        whole = pa.concat_tables([table for _, table in found])
        counts = [table.num_rows for _, table in found]
        numbers = np.repeat(np.array([number for number, _ in found], np.int32), counts)
        hashes = whole.column(HASH).to_numpy()
        if routes:
            fixed = np.repeat([routes.get(number, 0) for number, _ in found], counts)
            keyed = np.repeat([number not in routes for number, _ in found], counts)
            hashes = np.where(keyed, hashes, fixed)
        partitions = hashes % len(owners)
        if counted is not None:
            counted += np.bincount(partitions, minlength=len(owners))
        targets = owners[partitions]
        whole = whole.append_column(pa.field(_OWNER, pa.int32(), False), pa.array(numbers))
        first = int(targets[0]) if len(targets) else 0
        if (targets == first).all():
            yield first, _stream(whole, name)
            continue
        order = np.argsort(targets, kind="stable")
        ordered, places = whole.take(order), targets[order]
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(places)], strict=True):
            yield int(places[start]), _stream(ordered.slice(int(start), int(stop - start)), name)


def unpack_states(payload: Any) -> tuple[str, Iterator[tuple[int, pa.Table]]]:
    """The name of the tables in a payload, and the rows of each operator by its number."""
    table = pa.ipc.open_stream(opened(payload)).read_all()
    name = (table.schema.metadata or {})[_TABLE].decode()
    numbers = table.column(_OWNER).to_numpy()
    kept = table.drop_columns([_OWNER]).replace_schema_metadata(None)
    starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    stops = [*starts[1:], len(numbers)]
    return name, (
        (int(numbers[start]), kept.slice(start, stop - start))
        for start, stop in zip(starts, stops, strict=True)
    )


def _stream(table: pa.Table, name: str) -> pa.Buffer:
    target = pa.BufferOutputStream()
    table = table.replace_schema_metadata({_TABLE: name.encode()})
    with pa.ipc.new_stream(target, table.schema, options=_WRITE) as writer:
        writer.write_table(table.combine_chunks())
    return target.getvalue()
