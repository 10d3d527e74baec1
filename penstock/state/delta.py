"""What has changed since a task's last file: rows added and rows removed, with no knowledge of operators.

The rows that a chain of files holds for one schema are a log: a snapshot begins it, a delta appends what is
new, and names what is gone by its place in the log. So reading needs no comparisons; and of the base of the
next delta only the hash and the place of each row are kept in memory, not the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.state.groups import SchemaGroup, TableName
from penstock.state.manifest import FileEntry, FileLink, Manifest
from penstock.state.row_hash import Hashes, can_hash, row_hashes
from penstock.state.row_match import matched
from penstock.state.tables import Ints

_NONE = np.zeros(0, np.int64)

# The most snapshots in a row for which nothing is hashed, where deltas have not paid.
_LONGEST_REST = 15


@dataclass(frozen=True)
class LoggedRows:
    """The rows of one schema as the last file left them."""

    tables: Mapping[TableName, tuple[int, int]]  # where the rows of each are in the arrays
    first: Hashes
    second: Hashes
    places: Ints  # of each row in the log
    log_length: int


@dataclass(frozen=True)
class Base:
    """What a task wrote last, as far as its next file needs it.

    It is never changed by a write, so a task that is tried again can use it again.
    """

    entry: FileEntry
    virtual_partitions: int
    logs: Mapping[str, LoggedRows]  # by the schema's id; none while it rests
    unpaid: int = 0  # how often in a row a delta would not have paid
    rest: int = 0  # for how many writes none is tried

    def is_in(self, manifest: Manifest) -> bool:
        """Whether a version has this file. Only then may the version that follows it build on it."""
        return self.entry in manifest.files

    @property
    def nbytes(self) -> int:
        """Memory that it keeps: 24 bytes a row."""
        return sum(log.first.nbytes + log.second.nbytes + log.places.nbytes for log in self.logs.values())


@dataclass(frozen=True)
class SchemaPart:
    """What a file says of one schema: all tables that the state has, and what to do to the log."""

    whole: SchemaGroup  # the state's rows; only their names and counts go into the file
    added: SchemaGroup | None  # rows that the file holds
    removed: Ints  # places in the log
    log_start: int  # how long the log is before the rows are added; 0 begins a new one

    @property
    def is_empty(self) -> bool:
        return self.added is None and len(self.removed) == 0

    @property
    def cost(self) -> float:
        """About how many bytes it takes in the file."""
        added = 0 if self.added is None else self.added.rows.num_rows
        return self.whole.rows.nbytes * added / self.whole.rows.num_rows + 8 * len(self.removed)


@dataclass(frozen=True)
class WritePlan:
    """What to write, what it builds on, and what the next base will know."""

    parts: Sequence[SchemaPart]
    chain: tuple[FileLink, ...] = ()
    logs: Mapping[str, LoggedRows] = field(default_factory=dict)
    unpaid: int = 0
    rest: int = 0
    is_empty: bool = False  # nothing has changed


def snapshot(groups: Sequence[SchemaGroup], unpaid: int = 0, rest: int = 0) -> WritePlan:
    """All rows, and nothing hashed."""
    return WritePlan([_all_of(group) for group in groups], unpaid=unpaid, rest=rest)


def plan(groups: Sequence[SchemaGroup], base: Base | None, chain_limit: int) -> WritePlan:
    """A delta to ``base`` if it pays, or else a snapshot, which compacts the chain.

    It pays if it is less than half of a snapshot, and the deltas of a chain together less than one. A state
    that changes too much each time is hashed ever more seldom.
    """
    if chain_limit < 1 or not all(can_hash(group.rows.schema) for group in groups):
        return snapshot(groups)
    unpaid = 0 if base is None else base.unpaid
    if base is not None and base.rest > 0:
        return snapshot(groups, unpaid, base.rest - 1)
    hashes = [row_hashes(group) for group in groups]
    if base is not None and base.logs and len(base.entry.links) <= chain_limit:
        changes = [
            _change(group, *pair, base.logs.get(group.schema_id))
            for group, pair in zip(groups, hashes, strict=True)
        ]
        parts = [part for part, _ in changes]
        cost, whole = sum(part.cost for part in parts), sum(group.rows.nbytes for group in groups)
        unpaid = unpaid + 1 if 2 * cost >= whole else 0
        if unpaid > 1:
            return snapshot(groups, unpaid, min(2 ** (unpaid - 1) - 1, _LONGEST_REST))
        if unpaid == 0 and cost + sum(link.bytes for link in base.entry.links[1:]) < whole:
            logs = {part.whole.schema_id: log for part, log in changes}
            same = all(part.is_empty for part in parts) and logs.keys() == base.logs.keys()
            return WritePlan(parts, base.entry.links, logs, is_empty=same)
    fresh = {group.schema_id: _new_log(group, *pair) for group, pair in zip(groups, hashes, strict=True)}
    return WritePlan([_all_of(group) for group in groups], logs=fresh, unpaid=unpaid)


def _all_of(group: SchemaGroup) -> SchemaPart:
    return SchemaPart(group, group, _NONE, 0)


def _new_log(group: SchemaGroup, first: Hashes, second: Hashes) -> LoggedRows:
    return LoggedRows(_spans(group), first, second, np.arange(len(first)), len(first))


def _change(
    group: SchemaGroup, first: Hashes, second: Hashes, log: LoggedRows | None
) -> tuple[SchemaPart, LoggedRows]:
    """What to do to one log, and what it is then. One that would change for the most part begins anew."""
    if log is not None:
        spans = _spans(group)
        both = np.array([(*span, *log.tables.get(name, (0, 0))) for name, span in spans.items()], np.int64)
        found, kept = matched(both, first, second, log.first, log.second)
        added = np.flatnonzero(found < 0)
        if 2 * len(added) < len(found):
            places = log.places[found]
            places[added] = log.log_length + np.arange(len(added))
            rows = group.taken(added) if len(added) else None
            part = SchemaPart(group, rows, log.places[~kept], log.log_length)
            return part, LoggedRows(spans, first, second, places, log.log_length + len(added))
    return _all_of(group), _new_log(group, first, second)


def _spans(group: SchemaGroup) -> dict[TableName, tuple[int, int]]:
    starts = group.starts
    return {name: (starts[number], starts[number + 1]) for number, name in enumerate(group.names)}
