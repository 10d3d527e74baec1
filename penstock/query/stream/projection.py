"""Choosing and computing columns: from what users pass to named expressions and their schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.query.errors import QueryError
from penstock.query.expr import Column, Expr, as_expr, col, undecided
from penstock.query.inference import Typed, cast_hint, common_type, infer, resolved, settled
from penstock.query.steps import ExplodeSpec
from penstock.query.steps.spec import NamedExprs
from penstock.query.types import DataType, Field, Schema, unknown_column
from penstock.query.user_functions import returns_nothing


def chosen(items: Sequence[object], named: Mapping[str, Any]) -> NamedExprs:
    """The columns of ``select("a", "b", {"c": expr}, d=expr)``, in order."""
    columns: list[tuple[str, Expr]] = []
    for item in items:
        if isinstance(item, str):
            columns.append((item, col(item)))
        elif isinstance(item, Mapping):
            columns += computed(item)
        elif isinstance(item, Column):
            columns.append((item.name, item))
        else:
            raise QueryError(
                "a computed column needs a name" if isinstance(item, Expr) else "not a column",
                detail=f"got {item!r}",
                hint="write e.g. select('lane', kmh=col('speed') * 3.6)",
            )
    columns += computed(named)
    _refuse_duplicates(name for name, _ in columns)
    return tuple(columns)


def computed(named: Mapping[str, Any]) -> NamedExprs:
    """The columns of ``c=expr``; numbers and booleans are constants."""
    return tuple((_text(name), value_expr(value, name)) for name, value in named.items())


def value_expr(value: Any, name: str) -> Expr:
    """An expression or a constant, but not a bare string: that could be either."""
    if isinstance(value, str):
        raise QueryError(
            f"'{value}' could be a column or a constant",
            detail=f"for column '{name}'",
            hint=f"write col('{value}') or lit('{value}')",
        )
    return as_expr(value)


def overwritten(schema: Schema, added: NamedExprs) -> NamedExprs:
    """All columns of ``schema`` with these in place of those they are named after, new ones at the end."""
    replaced = dict(added)
    kept = [(name, replaced.pop(name, col(name))) for name in schema.names]
    return (*kept, *replaced.items())


def renamed(schema: Schema, names: Mapping[str, str]) -> NamedExprs:
    """All columns of ``schema``, some under new names (``{old: new}``)."""
    for old, new in names.items():
        schema[old]
        _text(new)
    columns = tuple((names.get(name, name), col(name)) for name in schema.names)
    _refuse_duplicates(name for name, _ in columns)
    return columns


def without(schema: Schema, dropped: Sequence[str]) -> NamedExprs:
    """All columns of ``schema`` but these."""
    for name in dropped:
        schema[name]
    return tuple((name, col(name)) for name in schema.names if name not in dropped)


def projected_schema(columns: NamedExprs, schema: Schema) -> Schema:
    """The types of computed columns."""
    fields = []
    for name, expr in columns:
        typed = resolved(expr, schema)
        fields.append(Field(name, typed.dtype, typed.nullable))
    return Schema(fields)


def exploded_schema(rows: Sequence[NamedExprs], schema: Schema) -> Schema:
    """The types that the rows' columns have in common, name by name."""
    fields = []
    for index, (name, expr) in enumerate(rows[0]):
        types = [infer(row[index][1], schema) for row in rows]
        try:
            common = settled(common_type(expr, types))
        except QueryError:
            listed = ", ".join(
                f"{row[index][1]!r}: {typed.dtype}" for row, typed in zip(rows, types, strict=True)
            )
            raise QueryError(
                f"column '{name}' has types that do not fit together",
                detail=f"got {listed}",
                hint=cast_hint(
                    name, types[0].dtype, next(one.dtype for one in types if one.dtype is not types[0].dtype)
                ),
            ) from None
        fields.append(Field(name, common.dtype, any(typed.nullable for typed in types)))
    return Schema(fields)


def exploded(
    schema: Schema,
    rows: Iterable[Mapping[str, Any]],
    where: Sequence[Expr | None] | None,
    keep: Sequence[str],
) -> ExplodeSpec:
    """The rows that each event becomes, and when."""
    made = _exploded_rows(rows, keep, schema)
    conditions = (None,) * len(made) if where is None else tuple(where)
    if len(conditions) != len(made):
        raise QueryError(
            "where must have one condition per row",
            detail=f"got {len(conditions)} for {len(made)} rows",
            hint="None means always",
        )
    return ExplodeSpec(made, tuple(None if one is None else condition(one, schema) for one in conditions))


def _exploded_rows(
    rows: Iterable[Mapping[str, Any]], keep: Sequence[str], schema: Schema
) -> tuple[NamedExprs, ...]:
    """The rows of ``explode``, each with the kept columns first and the others in the first row's order."""
    listed = list(rows)
    if not listed:
        raise QueryError("explode needs at least one row", hint="write explode([dict(value=col('x')), ...])")
    for row in listed:
        if not isinstance(row, Mapping):
            raise QueryError(
                "a row must be a dict of columns", detail=f"got {row!r}", hint="dict(value=col('x'))"
            )
        if set(row) != set(listed[0]):
            raise QueryError(
                "all rows must have the same columns",
                detail=f"got {', '.join(listed[0])} and {', '.join(row)}",
                hint="fill what a row lacks with a typed null: lit(None, 'int64')",
            )
    for name in keep:
        schema[name]
    kept = tuple((name, col(name)) for name in keep)
    names = tuple(listed[0])
    _refuse_duplicates((*keep, *names))
    return tuple((*kept, *((name, value_expr(row[name], name)) for name in names)) for row in listed)


def passed_through(rows: Sequence[NamedExprs]) -> dict[str, str]:
    """Old name → new name of the columns that all rows hand on unchanged; an unchanged name comes first."""
    result: dict[str, str] = {}
    for index, (new, expr) in enumerate(rows[0]):
        if not isinstance(expr, Column):
            continue
        old = expr.name
        sources = [row[index][1] for row in rows]
        if all(isinstance(source, Column) and source.name == old for source in sources) and (
            old not in result or new == old
        ):
            result[old] = new
    return result


def condition(predicate: Any, schema: Schema) -> Expr:
    """A boolean expression, or why it is none."""
    if isinstance(predicate, str):
        raise QueryError(
            "a condition must be an expression",
            detail=f"got {predicate!r}",
            hint="write e.g. col('speed') > 30",
        )
    expr = as_expr(undecided(predicate))
    typed: Typed = infer(expr, schema)
    if typed.dtype is not DataType.BOOL:
        raise QueryError(
            "a condition must be true or false",
            detail=f"got {expr!r} of type {typed.dtype}",
            hint=f"compare it with something, e.g. {expr!r} > 0"
            if typed.dtype.is_numeric
            else "compare it: == or !=",
        )
    return expr


def known_columns(names: Sequence[Any], schema: Schema, what: str) -> tuple[str, ...]:
    """Names of columns that are there, each once."""
    for name in names:
        if not isinstance(name, str):
            raise QueryError(f"{what} must be column names", detail=f"got {name!r}", hint="write e.g. 'lane'")
        if name not in schema:
            raise unknown_column(name, schema.names)
    _refuse_duplicates(names)
    return tuple(names)


def _refuse_duplicates(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise QueryError(f"duplicate column '{name}'", hint="name each column once")
        seen.add(name)


def _text(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise QueryError("a column's name must be text", detail=f"got {name!r}", hint="name it e.g. 'speed'")
    return name


def check_function(function: object, method: str) -> None:
    """Refuses what cannot be called."""
    if not callable(function):
        raise QueryError(
            f"{method} needs a function", detail=f"got {function!r}", hint="pass it without calling it"
        )
    if returns_nothing(function):
        raise QueryError(
            f"{method}'s function returns nothing",
            detail=f"'{getattr(function, '__qualname__', function)}' has no return with a value and no yield",
            hint="write return [{...}], one dict per row, and return [] for none",
        )
