"""One file of state: the tables of all operators of one task, in one Arrow IPC file.

It has one row per operator and table: their names, which virtual partitions it holds, where the rows of each
end, and the rows themselves, sorted by partition, as an Arrow IPC stream. So a file is as many streams as
there are tables, however many partitions there are, and those of one operator can be read alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.state.manifest import FORMAT, unknown_format
from penstock.state.tables import StateTables, by_partition

_FORMAT_KEY = b"penstock.state.format"
_SCHEMA = pa.schema(
    [
        pa.field("operator", pa.string(), False),
        pa.field("table", pa.string(), False),
        pa.field("partitions", pa.list_(pa.int32()), False),
        pa.field("ends", pa.list_(pa.int64()), False),
        pa.field("rows", pa.large_binary(), False),
    ],
    metadata={_FORMAT_KEY: str(FORMAT)},
)

_OPTIONS = pa.ipc.IpcWriteOptions()  # one for all: pyarrow asks the environment for each that it makes


def encode(state: Mapping[str, StateTables], virtual_partitions: int) -> tuple[Any, int, tuple[int, ...]]:
    """The file's bytes, how many rows of state it has, and of which virtual partitions."""
    listed: list[dict[str, Any]] = []
    everywhere: set[int] = set()
    total = 0
    for operator, tables in state.items():
        for name, table in tables.items():
            if table.num_rows == 0:
                continue
            ordered, partitions, ends = by_partition(table, virtual_partitions)
            everywhere.update(partitions)
            total += table.num_rows
            listed.append(
                {
                    "operator": operator,
                    "table": name,
                    "partitions": partitions,
                    "ends": ends,
                    "rows": _stream(ordered),
                }
            )
    target = pa.BufferOutputStream()
    with pa.ipc.new_file(target, _SCHEMA, options=_OPTIONS) as writer:
        writer.write_table(pa.Table.from_pylist(listed, _SCHEMA))
    return target.getvalue(), total, tuple(sorted(everywhere))


def decode(
    buffer: Any, where: str, operators: Collection[str] | None, partitions: Collection[int]
) -> dict[tuple[str, str], tuple[list[int], pa.Table]]:
    """By operator and table: which of these virtual partitions it has, and their rows, which may share
    memory with ``buffer``. ``operators`` None: all.
    """
    reader = pa.ipc.open_file(buffer)
    found = (reader.schema.metadata or {}).get(_FORMAT_KEY, b"none").decode()
    if found != str(FORMAT):
        raise unknown_format(found, f"file {where}")
    index = reader.read_all()
    names: list[str] = index.column("operator").to_pylist()  # type: ignore[assignment]
    wanted = set(partitions)
    chosen: dict[tuple[str, str], tuple[list[int], pa.Table]] = {}
    for row, operator in enumerate(names):
        if operators is not None and operator not in operators:
            continue
        held: list[int] = index.column("partitions")[row].as_py()
        here = [partition for partition in held if partition in wanted]
        if here:
            stream: Any = index.column("rows")[row]
            table = pa.ipc.open_stream(stream.as_buffer()).read_all()
            if len(here) < len(held):
                table = _rows_of(table, held, index.column("ends")[row].as_py(), wanted)
            chosen[operator, index.column("table")[row].as_py()] = (here, table)
    return chosen


def _rows_of(table: pa.Table, held: list[int], ends: list[int], wanted: set[int]) -> pa.Table:
    mask = np.repeat([partition in wanted for partition in held], np.diff(ends, prepend=0))
    return table.filter(pa.array(mask))


def _stream(table: pa.Table) -> Any:
    target = pa.BufferOutputStream()
    with pa.ipc.new_stream(target, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table)
    return target.getvalue().to_pybytes()
