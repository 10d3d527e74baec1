"""One file of state: what one task has to say of all its operators, as a few Arrow streams and an index.

For each schema there is one Arrow IPC stream with the rows that the file holds of all tables of that schema,
and the places in the log of rows that are gone (see ``delta``). The index, JSON at the end, says which
tables the state has, how many rows each and in which virtual partitions, and which rows in here are
whose. So the cost is per schema, and per table only that of a few numbers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.state.delta import SchemaPart
from penstock.state.errors import GO_BACK, StateError
from penstock.state.groups import SchemaGroup, TableName
from penstock.state.manifest import FORMAT, unknown_format
from penstock.state.tables import Ints

_END = struct.Struct("<QQQ8s")  # where the index begins, its length, the format, and:
_MARK = b"penstate"
_ALIGNED = 64

_OPTIONS = pa.ipc.IpcWriteOptions()  # one for all: pyarrow asks the environment for each that it makes


@dataclass(frozen=True)
class Section:
    """What a file says of one schema."""

    names: tuple[TableName, ...]  # of all tables that the state has
    counts: tuple[int, ...]  # their rows in the state, not in this file
    partitions: tuple[int, ...]  # bits
    log_start: int
    added: SchemaGroup | None
    removed: Ints


@dataclass(frozen=True)
class StateFile:
    """A file that was read."""

    name: str
    virtual_partitions: int
    sections: dict[str, Section]  # by the schema's id


# -- writing -------------------------------------------------------------------------------------------------


def encode(parts: Sequence[SchemaPart], virtual_partitions: int) -> tuple[Any, int, tuple[int, ...]]:
    """The file's bytes, how many rows the state has (not the file), and of which virtual partitions."""
    target = pa.BufferOutputStream()
    listed: list[dict[str, Any]] = []
    held = total = 0
    for part in parts:
        partitions = part.whole.held_partitions(virtual_partitions)
        for bits in partitions:
            held |= bits
        total += part.whole.rows.num_rows
        section = {
            "schema": part.whole.schema_id,
            "operators": [operator for operator, _ in part.whole.names],
            "tables": [table for _, table in part.whole.names],
            "rows": part.whole.counts.tolist(),
            "partitions": partitions,
            "log_start": part.log_start,
        }
        if part.added is not None:
            _align(target)
            start = target.tell()
            with pa.ipc.new_stream(target, part.added.rows.schema, options=_OPTIONS) as writer:
                writer.write_batch(part.added.rows)
            section["added"] = {
                "at": [start, target.tell() - start],
                "rows": part.added.counts.tolist(),
                "texts": {str(column): lengths.tolist() for column, lengths in part.added.texts.items()},
            }
        if len(part.removed):
            _align(target)
            section["removed"] = [target.tell(), len(part.removed)]
            target.write(part.removed.astype("<i8").tobytes())
        listed.append(section)
    index = json.dumps(
        {"virtual_partitions": virtual_partitions, "sections": listed}, separators=(",", ":")
    ).encode()
    start = target.tell()
    target.write(index)
    target.write(_END.pack(start, len(index), FORMAT, _MARK))
    return target.getvalue(), total, tuple(bit for bit in range(virtual_partitions) if held >> bit & 1)


def _align(target: Any) -> None:
    target.write(b"\0" * (-target.tell() % _ALIGNED))


# -- reading -------------------------------------------------------------------------------------------------


def decode(buffer: Any, where: str) -> StateFile:
    """Reads a file whose bytes are known to be as they were written. Rows share memory with ``buffer``."""
    if len(buffer) < _END.size or bytes(buffer[-len(_MARK) :]) != _MARK:
        raise unknown_format("none", f"file {where}")
    start, length, found, _ = _END.unpack(bytes(buffer[len(buffer) - _END.size :]))
    if found != FORMAT:
        raise unknown_format(found, f"file {where}")
    index = json.loads(bytes(buffer[start : start + length]))
    sections = {listed["schema"]: _section(buffer, listed) for listed in index["sections"]}
    return StateFile(where, index["virtual_partitions"], sections)


def _section(buffer: Any, listed: dict[str, Any]) -> Section:
    names = tuple(zip(listed["operators"], listed["tables"], strict=True))
    added = None
    if "added" in listed:
        start, length = listed["added"]["at"]
        with pa.ipc.open_stream(buffer.slice(start, length)) as reader:
            rows = reader.read_next_batch()
        texts = {
            int(column): np.array(lengths, np.int64) for column, lengths in listed["added"]["texts"].items()
        }
        added = SchemaGroup(names, np.array(listed["added"]["rows"], np.int64), rows, texts)
    removed: Ints = np.zeros(0, np.int64)
    if "removed" in listed:
        start, count = listed["removed"]
        removed = np.frombuffer(buffer.slice(start, 8 * count), "<i8").astype(np.int64, copy=False)
    counts, partitions = tuple(listed["rows"]), tuple(listed["partitions"])
    return Section(names, counts, partitions, listed["log_start"], added, removed)


def rows_of(
    chain: Sequence[StateFile], operators: Collection[str] | None, partitions: Collection[int]
) -> dict[TableName, tuple[int, pa.Table]]:
    """The state that a snapshot and its deltas, in order, give: by operator and table, which of these virtual
    partitions it has (as bits), and their rows. ``operators`` None: all.
    """
    last = chain[-1]
    wanted = sum(1 << partition for partition in set(partitions))
    here = [partition for partition in set(partitions) if partition < last.virtual_partitions]
    chosen: dict[TableName, tuple[int, pa.Table]] = {}
    for schema, section in last.sections.items():
        bits = {
            name: held & wanted
            for name, held in zip(section.names, section.partitions, strict=True)
            if held & wanted and (operators is None or name[0] in operators)
        }
        if not bits:
            continue
        everything = all(held & ~wanted == 0 for held in section.partitions)
        pieces: dict[TableName, list[pa.Table]] = {}
        for group, alive in _log(chain, schema):
            keep = alive
            if len(bits) < len(section.names):
                keep = keep & np.repeat([name in bits for name in group.names], group.counts)
            if not everything:
                keep = keep & group.in_partitions(here, last.virtual_partitions)
            for name, table in (group if keep.all() else group.taken(np.flatnonzero(keep))).tables():
                pieces.setdefault(name, []).append(table)
        for name, tables in pieces.items():
            chosen[name] = (bits[name], tables[0] if len(tables) == 1 else pa.concat_tables(tables))
    return chosen


def _log(chain: Sequence[StateFile], schema: str) -> list[tuple[SchemaGroup, NDArray[np.bool_]]]:
    """The rows that the chain holds of one schema, and which of them the state still has."""
    groups: list[SchemaGroup] = []
    removed: list[Ints] = []
    for file in chain:
        section = file.sections.get(schema)
        if section is None or section.log_start == 0:
            groups, removed = [], []
        if section is None:
            continue
        length = sum(group.rows.num_rows for group in groups)
        if section.log_start != length:
            raise _broken(chain[-1], f"{file.name} builds on {section.log_start} rows, there are {length}")
        removed.append(section.removed)
        if section.added is not None:
            groups.append(section.added)
    alive = np.ones(sum(group.rows.num_rows for group in groups), np.bool_)
    for places in removed:
        alive[places] = False
    found: list[tuple[SchemaGroup, NDArray[np.bool_]]] = []
    counts: dict[TableName, int] = {}
    start = 0
    for group in groups:
        mine = alive[start : start + group.rows.num_rows]
        start += len(mine)
        found.append((group, mine))
        kept = np.diff(np.append(0, np.cumsum(mine))[group.starts])
        for name, count in zip(group.names, kept.tolist(), strict=True):
            counts[name] = counts.get(name, 0) + count
    last = chain[-1].sections[schema]
    expected = dict(zip(last.names, last.counts, strict=True))
    for name in counts.keys() | expected.keys():
        count, written = counts.get(name, 0), expected.get(name, 0)
        if count != written:
            raise _broken(
                chain[-1], f"table '{name[1]}' of '{name[0]}' has {count} rows, written were {written}"
            )
    return found


def _broken(file: StateFile, detail: str) -> StateError:
    return StateError(
        "inconsistent checkpoint",
        f"file {file.name}: {detail}",
        f"its files do not belong together: {GO_BACK}",
    )
