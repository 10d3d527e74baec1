"""Joins of two streams: which columns are the keys, what the pairs are made of, and where names collide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.query.durations import Duration, duration_text, duration_us
from penstock.query.errors import QueryError
from penstock.query.inference import cast_hint
from penstock.query.steps import IntervalJoinSpec, WindowJoinSpec
from penstock.query.types import DataType, Field, Schema
from penstock.query.windows import Sliding, Window

KeyPairs = tuple[tuple[str, str], ...]
JoinColumns = tuple[tuple[str, int, str], ...]  # (name in the result, input 0 or 1, its name there)
On = str | Sequence[str] | Mapping[str, str]

WINDOW_FIELDS = (Field("window_start", DataType.TIMESTAMP), Field("window_end", DataType.TIMESTAMP))
WINDOW_NAMES = tuple(field.name for field in WINDOW_FIELDS)


def window_joined(left: Schema, right: Schema, on: On, window: Window) -> tuple[WindowJoinSpec, Schema]:
    """A window join and what its pairs look like."""
    pairs = joined_keys(on, left, right)
    aligned = check_aligned(window, "a join")
    columns = joined_columns(pairs, left, right, WINDOW_NAMES)
    return WindowJoinSpec(pairs, aligned, columns), Schema(
        [*WINDOW_FIELDS, *joined_fields(columns, left, right)]
    )


def interval_joined(
    left: Schema, right: Schema, on: On, lower: Duration, upper: Duration
) -> tuple[IntervalJoinSpec, Schema]:
    """An interval join and what its pairs look like."""
    pairs = joined_keys(on, left, right)
    lower_us, upper_us = duration_us(lower, "lower bound"), duration_us(upper, "upper bound")
    if lower_us > upper_us:
        raise QueryError(
            "the lower bound must not exceed the upper",
            detail=f"got lower '{duration_text(lower_us)}', upper '{duration_text(upper_us)}'",
            hint="write e.g. lower='-5s', upper='10s'",
        )
    columns = joined_columns(pairs, left, right)
    return IntervalJoinSpec(pairs, lower_us, upper_us, columns), Schema(joined_fields(columns, left, right))


def union_schema(schemas: Sequence[Schema]) -> Schema:
    """The columns that all have, nullable where one of them is; refuses other names and types."""
    first = schemas[0]
    for other in schemas[1:]:
        _check_same_columns(first, other)
    return Schema(
        Field(field.name, field.dtype, any(schema[field.name].nullable for schema in schemas))
        for field in first
    )


def key_pairs(on: object, right: str = "the other stream") -> KeyPairs:
    """``"id"``, ``["a", "b"]`` or ``{"ad_id": "id"}`` as pairs (column here, column there)."""
    if isinstance(on, str):
        pairs: list[tuple[Any, Any]] = [(on, on)]
    elif isinstance(on, Mapping):
        pairs = list(on.items())
    elif isinstance(on, Sequence):
        pairs = [(name, name) for name in on]
    else:
        pairs = []
    if not pairs or not all(isinstance(name, str) for pair in pairs for name in pair):
        raise QueryError(
            "a join needs keys",
            detail=f"got on={on!r}",
            hint=f"write on='id', or on={{'id': column of {right}}}",
        )
    for side in (0, 1):
        names = [pair[side] for pair in pairs]
        if len(set(names)) < len(names):
            raise QueryError("a key is named twice", detail=f"got on={on!r}", hint="name each key once")
    return tuple(pairs)


def joined_keys(on: On, left: Schema, right: Schema) -> KeyPairs:
    """The keys of a join of two streams; refuses those that are not there or whose types differ."""
    pairs = key_pairs(on)
    for ours, theirs in pairs:
        a = left[ours]
        try:
            b = right[theirs]
        except QueryError as error:
            error.detail = "in the other stream"
            raise
        if a.dtype is not b.dtype:
            raise QueryError(
                "key types do not match",
                detail=f"'{ours}' is {a.dtype}, '{theirs}' of the other stream is {b.dtype}",
                hint=cast_hint(ours, a.dtype, b.dtype),
            )
    return pairs


def joined_columns(pairs: KeyPairs, left: Schema, right: Schema, taken: Sequence[str] = ()) -> JoinColumns:
    """All of the left, then all of the right but its keys; a right name that is taken gets ``_right``."""
    columns: list[tuple[str, int, str]] = []
    for name in left.names:
        if name in taken:
            raise QueryError(
                f"column '{name}' is taken by the window",
                hint=f"rename or drop it before the join: .rename({name}='{name}_before')",
            )
        columns.append((name, 0, name))
    names = {*taken, *left.names}
    keys = {theirs for _, theirs in pairs}
    for theirs in right.names:
        if theirs in keys:
            continue
        name = theirs if theirs not in names else f"{theirs}_right"
        if name in names:
            raise QueryError(
                f"column '{theirs}' is on both sides, and so is '{name}'",
                hint=f"rename one before the join: .rename({theirs}='other_{theirs}')",
            )
        names.add(name)
        columns.append((name, 1, theirs))
    return tuple(columns)


def joined_fields(columns: JoinColumns, left: Schema, right: Schema) -> list[Field]:
    """The fields of the pairs."""
    fields = []
    for name, side, theirs in columns:
        field = (left, right)[side][theirs]
        fields.append(Field(name, field.dtype, field.nullable))
    return fields


def check_window(window: object) -> Window:
    """A window of some length, or why it is none."""
    if not isinstance(window, Window):
        raise QueryError("not a window", detail=f"got {window!r}", hint="write e.g. tumbling('10s')")
    window.check()
    return window


def check_aligned(window: object, what: str) -> Sliding:
    """A tumbling or sliding window: one whose bounds do not depend on the events."""
    checked = check_window(window)
    if not isinstance(checked, Sliding):
        raise QueryError(
            f"{what} takes no {checked.name} window",
            detail=f"got {checked}",
            hint="write tumbling('10s') or sliding(...)",
        )
    return checked


def _check_same_columns(ours: Schema, theirs: Schema) -> None:
    for name in (*ours.names, *theirs.names):
        if name not in theirs or name not in ours:
            side = "the other stream" if name in ours else "this stream"
            raise QueryError(
                f"column '{name}' is not in {side}",
                detail=f"got {', '.join(ours.names)} and {', '.join(theirs.names)}",
                hint="a union needs the same columns: select or rename first",
            )
        if ours[name].dtype is not theirs[name].dtype:
            raise QueryError(
                f"column '{name}' has two types",
                detail=f"got {ours[name].dtype} and {theirs[name].dtype}",
                hint=cast_hint(name, theirs[name].dtype, ours[name].dtype),
            )
