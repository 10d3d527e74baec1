"""What a record of Kafka has besides its value, as columns: key, headers, timestamp, partition and offset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.connectors.kafka.feed import Record
from penstock.memory.arrow import ArrowArray, arrow_type
from penstock.query.errors import QueryError
from penstock.query.types import DataType, Field, Schema

_HEADER = "header:"
_NAMES = ("key", "value", "timestamp", "partition", "offset")


@dataclass(frozen=True)
class RecordPart:
    """A column, and which part of the record it is."""

    column: Field
    #: ``"key"``, ``"value"``, ``"timestamp"``, ``"partition"``, ``"offset"`` or ``"header:NAME"``
    what: str

    def __post_init__(self) -> None:
        dtype, name = self.column.dtype, self.column.name
        header = self.what.startswith(_HEADER) and len(self.what) > len(_HEADER)
        if not (header or self.what in _NAMES):
            raise QueryError(
                "unknown part of a Kafka record",
                detail=f"column '{name}' is to be {self.what!r}",
                hint="parts are key, value, timestamp, partition, offset and header:NAME",
            )
        if self.what == "timestamp" and dtype is not DataType.TIMESTAMP:
            raise QueryError("a record's timestamp is a timestamp", detail=f"column '{name}' is {dtype}")
        if self.what == "partition" and not dtype.is_integer:
            raise QueryError("a record's partition is an integer", detail=f"column '{name}' is {dtype}")
        if self.what == "offset" and dtype is not DataType.INT64:
            raise QueryError("a record's offset is an int64", detail=f"column '{name}' is {dtype}")

    def array(self, messages: Sequence[Record], unfit: dict[int, str]) -> ArrowArray:
        """The column of these records; what is no text goes into ``unfit`` with a reason."""
        if self.what == "timestamp":
            moments = [message.timestamp() for message in messages]
            return pa.array([1_000 * ms if kind else None for kind, ms in moments], pa.int64())
        if self.what == "partition":
            return pa.array([message.partition() for message in messages], arrow_type(self.column.dtype))
        if self.what == "offset":
            return pa.array([message.offset() for message in messages], pa.int64())
        if self.what == "key":
            values: list[Any] = [message.key() for message in messages]
        elif self.what == "value":
            values = [message.value() for message in messages]
        else:
            values = [_header(message, self.what[len(_HEADER) :]) for message in messages]
        return _texts(values, f"the record's {self.what}", unfit)


def parts_of(schema: Schema, columns: Mapping[str, str]) -> tuple[RecordPart, ...]:
    """The parts of the record, checked against the schema."""
    for name in columns:
        if name not in schema:
            hint = "columns= says which columns of the schema are not in the value"
            raise QueryError(f"the schema has no column '{name}'", hint=hint)
    return tuple(RecordPart(field, columns[field.name]) for field in schema if field.name in columns)


def _header(message: Record, name: str) -> bytes | None:
    """The last one of that name, as Kafka's own clients see it."""
    value = None
    for key, given in message.headers() or ():
        if key == name:
            value = given
    return value


def _texts(values: list[bytes | None], what: str, unfit: dict[int, str]) -> ArrowArray:
    binary: ArrowArray = pa.array(values, pa.binary())
    try:
        return binary.cast(pa.string())
    except pa.ArrowInvalid:
        pass
    texts: list[str | None] = []
    for place, value in enumerate(values):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError as error:
            unfit.setdefault(place, f"{what} is not UTF-8: byte {error.start}")
            texts.append("")
    return pa.array(texts, pa.string())
