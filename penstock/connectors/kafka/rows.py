"""Rows as records of Kafka: which columns are the key, the value, headers and the timestamp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.formats.json_lines import JsonText
from penstock.connectors.formats.line_format import times_as_text
from penstock.query.errors import RunError
from penstock.query.types import DataType, Schema


class OutRecord(NamedTuple):
    """A record to be written."""

    value: bytes | None
    key: bytes | None
    headers: list[tuple[str, bytes | None]]
    ms: int  # 0: when it is written


@dataclass(frozen=True)
class RowForm:
    """``value`` None is a JSON object of the whole row; all others are names of columns."""

    key: str | None = None
    value: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timestamp: str | None = None

    def check(self, schema: Schema) -> None:
        """Refuses what these rows do not have."""
        named = [name for name in (self.key, self.value, self.timestamp, *self.headers.values()) if name]
        for name in named:
            if name not in schema:
                columns = ", ".join(schema.names)
                raise RunError(
                    f"a Kafka sink needs column '{name}', which the rows lack: they have {columns}"
                )
        if self.value is not None and schema[self.value].dtype is not DataType.STRING:
            raise RunError(f"value '{self.value}' is no string column: it is {schema[self.value].dtype}")
        if self.timestamp is not None and schema[self.timestamp].dtype is not DataType.TIMESTAMP:
            kind = schema[self.timestamp].dtype
            raise RunError(f"timestamp '{self.timestamp}' is no timestamp column: it is {kind}")

    def records(self, batch: pa.RecordBatch) -> Iterator[OutRecord]:
        """A record per row."""
        texts = times_as_text(batch)
        count = batch.num_rows
        if self.value is None:
            values: list[bytes | None] = list(JsonText().lines(batch).split(b"\n")[:-1])
        else:
            values = _texts(texts, self.value)
        keys = [None] * count if self.key is None else _texts(texts, self.key)
        headers = [(name, _texts(texts, column)) for name, column in self.headers.items()]
        times = [0] * count
        if self.timestamp is not None:
            micros: list[int | None] = batch.column(self.timestamp).cast(pa.int64()).to_pylist()
            times = [(moment or 0) // 1_000 for moment in micros]
        for row in range(count):
            yield OutRecord(
                values[row], keys[row], [(name, column[row]) for name, column in headers], times[row]
            )


def _texts(batch: pa.RecordBatch, name: str) -> list[bytes | None]:
    """The column as text: what the source reads back as the column's type."""
    column: Any = batch.column(name)
    if not pa.types.is_string(column.type):
        column = pc.cast(column, pa.string())
    return [None if value is None else value.encode() for value in column.to_pylist()]
