"""What steps mean to checkpoints, as plain values: what several of them have. Not to be reworded."""

from __future__ import annotations

from typing import Any

from penstock.query.aggregates import Aggregate
from penstock.query.expr import Expr
from penstock.query.steps.spec import NamedExprs


def key_of(expr: Expr | None) -> tuple[Any, ...] | None:
    return None if expr is None else expr.key()


def keys_of(columns: NamedExprs) -> tuple[Any, ...]:
    return tuple((name, expr.key()) for name, expr in columns)


def all_said(aggregates: tuple[tuple[str, Aggregate], ...]) -> tuple[Any, ...]:
    return tuple((name, aggregate.said()) for name, aggregate in aggregates)
