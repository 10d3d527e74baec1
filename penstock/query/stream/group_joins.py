"""Group joins: what a pair is made of, and what becomes of a left event and its aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.query.aggregates import Aggregate
from penstock.query.errors import QueryError
from penstock.query.expr import Expr, col
from penstock.query.steps import GroupJoinSpec
from penstock.query.steps.spec import NamedExprs
from penstock.query.stream.joins import (
    WINDOW_FIELDS,
    On,
    check_aligned,
    joined_columns,
    joined_fields,
    joined_keys,
)
from penstock.query.stream.keyed import aggregated_fields
from penstock.query.stream.projection import chosen, condition, projected_schema
from penstock.query.types import Field, Schema
from penstock.query.windows import Window


def group_joined(
    left: Schema,
    right: Schema,
    on: On,
    window: Window,
    aggregates: Mapping[str, Aggregate],
    where: Expr | bool | None,
    select: Sequence[str | Mapping[str, Any]] | None,
) -> tuple[GroupJoinSpec, Schema]:
    """A group join and what its events look like."""
    pairs = joined_keys(on, left, right)
    aligned = check_aligned(window, "a group join")
    if not _is_mapping(aggregates) or not aggregates:
        raise QueryError(
            "group_join needs an aggregate",
            detail=f"got {aggregates!r}",
            hint="write e.g. {'matches': count()}",
        )
    pair = joined_columns(pairs, left, right)
    paired = Schema(joined_fields(pair, left, right))
    taken = [name for name in aggregates if name in left]
    if taken:
        raise QueryError(f"column '{taken[0]}' is there already", hint="name the aggregate otherwise")
    made = [
        # without a match there is nothing to aggregate
        Field(field.name, field.dtype, aggregates[field.name].function.of_none is None)
        for field in aggregated_fields(aggregates, paired, ())
    ]
    bounds = [field for field in WINDOW_FIELDS if field.name not in left]
    if select is None and len(bounds) < len(WINDOW_FIELDS):
        name = next(field.name for field in WINDOW_FIELDS if field.name in left)
        raise QueryError(
            f"column '{name}' is taken by the window",
            hint=f"rename it before the join, .rename({name}='{name}_before'), or say what to select",
        )
    known = Schema([*bounds, *left, *made])
    if select is None:
        columns: NamedExprs = tuple((name, col(name)) for name in known.names)
    else:
        columns = chosen(select, {})
        if not columns:
            raise QueryError("select needs a column", hint="write e.g. select=['id', {'n': col('n') + 1}]")
    spec = GroupJoinSpec(
        pairs,
        aligned,
        pair,
        None if where is None else condition(where, paired),
        tuple(aggregates.items()),
        columns,
    )
    return spec, projected_schema(columns, known)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)
