"""How steps read: the phrases that several of them use."""

from __future__ import annotations

from typing import Any

from penstock.query.aggregates import Aggregate
from penstock.query.expr import Column, Expr
from penstock.query.steps.spec import NamedExprs


def function_name(function: Any) -> str:
    """A function's name that is the same in every run: its module and qualified name."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{getattr(named, '__module__', None)}.{named.__qualname__}"


def columns_text(columns: NamedExprs) -> str:
    return ", ".join(
        name if isinstance(expr, Column) and expr.name == name else f"{name} = {expr!r}"
        for name, expr in columns
    )


def aggregates_text(aggregates: tuple[tuple[str, Aggregate], ...]) -> str:
    return ", ".join(f"{name} = {aggregate!r}" for name, aggregate in aggregates)


def where_text(condition: Expr | None, word: str = "where") -> str:
    return "" if condition is None else f" {word} {condition!r}"


def pairs_text(on: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(ours if ours == theirs else f"{ours} = {theirs}" for ours, theirs in on)


def by_text(keys: tuple[str, ...]) -> str:
    return f"by {', '.join(keys)}, " if keys else ""
