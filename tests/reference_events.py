"""Events of the oracle, and what its operators do with them: pairs, groups, order, rows that fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.query.aggregates import Aggregate
from penstock.query.errors import PenstockError
from penstock.query.expr import Expr
from penstock.query.graph import QueryVertex
from penstock.query.steps.spec import NamedExprs
from penstock.query.types import DataType, Field, Schema
from tests.reference_aggregates import aggregate_rows, key_of, xxhash64
from tests.reference_expressions import evaluate

Row = dict[str, Any]


class AmbiguousOrderError(PenstockError):
    """Two different events stand at the same place in the order that an operator's result depends on."""


@dataclass(frozen=True)
class Event:
    """One event: its row, its time, its place among equal times, and whether it came late."""

    time: int
    order: int
    sub: int
    late: bool
    row: Row

    @property
    def place(self) -> tuple[int, int, int]:
        return self.time, self.order, self.sub


def spec_of(node: QueryVertex, kind: type[Any]) -> Any:
    assert isinstance(node.spec, kind)
    return node.spec


def holds(condition: Expr | None, row: Row, schema: Schema) -> bool:
    return condition is None or evaluate(condition, row, schema) is True


def bounds_schema(left: Schema) -> dict[str, Field]:
    """The bounds of a window and the columns of an event, by name; the event's own come first."""
    bounds = {name: Field(name, DataType.TIMESTAMP) for name in ("window_start", "window_end")}
    return bounds | {one.name: one for one in left}


def with_row(event: Event, row: Row, sub: int | None = None) -> Event:
    return Event(event.time, event.order, event.sub if sub is None else sub, event.late, row)


def projected(columns: NamedExprs, row: Row, schema: Schema, result: Schema) -> Row:
    return row_of({name: evaluate(expr, row, schema) for name, expr in columns}, result)


def events_by_key(events: list[Event], keys: Iterable[str]) -> list[list[Event]]:
    names = tuple(keys)
    groups: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
    for event in events:
        groups[key_of(event.row[name] for name in names)].append(event)
    return list(groups.values())


def pairs_of(streams: list[list[Event]], on: tuple[tuple[str, str], ...]) -> list[tuple[Event, Event]]:
    matching: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
    for event in streams[1]:
        matching[key_of(event.row[theirs] for _, theirs in on)].append(event)
    pairs = []
    for event in streams[0]:
        key = key_of(event.row[ours] for ours, _ in on)
        if None not in key:  # null matches nothing, not even null
            pairs += [(event, other) for other in matching[key]]
    return pairs


def paired_event(
    node: QueryVertex,
    columns: tuple[tuple[str, int, str], ...],
    left: Event,
    right: Event,
    time: int,
    bounds: Row,
) -> Event:
    order = xxhash64((value, DataType.INT64) for value in (*left.place, *right.place))
    row = {name: (left, right)[side].row[theirs] for name, side, theirs in columns}
    return Event(time, order, 0, False, row_of({**bounds, **row}, node.schema))


def ordered_events(events: list[Event]) -> list[Event]:
    ordered = sorted(events, key=lambda event: event.place)
    for one, other in pairwise(ordered):
        if one.place == other.place and repr(one.row) != repr(other.row):
            raise AmbiguousOrderError(f"two events at {one.place}: {one.row} and {other.row}")
    return ordered


def aggregated(what: Aggregate, members: list[Event], schema: Schema) -> Any:
    return aggregate_rows(what, [event.row for event in members], schema)


def hash_of(keys: Row, schema: Schema) -> int:
    return xxhash64((value, schema[name].dtype) for name, value in keys.items())


ZEROS: dict[DataType, Any] = {
    DataType.BOOL: False,
    DataType.INT32: 0,
    DataType.INT64: 0,
    DataType.FLOAT32: 0.0,
    DataType.FLOAT64: 0.0,
    DataType.TIMESTAMP: 0,
    DataType.STRING: "",
}


def row_of(values: Mapping[str, Any], schema: Schema) -> Row:
    """The columns of ``schema`` in order, each as the Python type of its column."""
    return {one.name: _fitted(values.get(one.name), one.dtype) for one in schema}


def _fitted(value: Any, dtype: DataType) -> Any:
    if value is None or dtype is DataType.STRING:
        return value
    if dtype is DataType.BOOL:
        return bool(value)
    if dtype is DataType.FLOAT32:
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    return float(value) if dtype is DataType.FLOAT64 else int(value)


def table_rows(table: pa.Table) -> list[Row]:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)

    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return (aware - epoch) // timedelta(microseconds=1)
        return value

    return [{name: plain(value) for name, value in row.items()} for row in table.to_pylist()]
