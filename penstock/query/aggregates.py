"""Aggregates over the events of a window. All pass over nulls, as SQL does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from penstock.query.errors import QueryError
from penstock.query.expr import Expr, as_expr, col
from penstock.query.inference import Typed, resolved
from penstock.query.types import DataType, Schema


class AggregateKind(Enum):
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    VARIANCE = "variance"
    FIRST = "first"
    LAST = "last"
    COUNT_DISTINCT = "count_distinct"
    QUANTILE = "quantile"

    @property
    def needs_order(self) -> bool:
        """Whether the result depends on the order of events."""
        return self in (AggregateKind.FIRST, AggregateKind.LAST)

    @property
    def is_collected(self) -> bool:
        """Whether it keeps every value of the window instead of a fixed-size accumulator."""
        return self in (AggregateKind.COUNT_DISTINCT, AggregateKind.QUANTILE)


@dataclass(frozen=True, eq=False)
class Aggregate:
    """One aggregate: what it computes, of which expression (``count()`` has none), with which parameter."""

    kind: AggregateKind
    expr: Expr | None = None
    parameter: float | None = None

    def result_type(self, schema: Schema) -> Typed:
        """The type of the result over events of ``schema``; raises where the kind does not fit the column."""
        if self.expr is None:
            return Typed(DataType.INT64)
        a = resolved(self.expr, schema)
        kind = self.kind
        if kind in (AggregateKind.COUNT, AggregateKind.COUNT_DISTINCT):
            return Typed(DataType.INT64)
        if kind in (AggregateKind.FIRST, AggregateKind.LAST):
            return a
        if kind in (AggregateKind.MIN, AggregateKind.MAX) and (
            a.dtype.is_numeric or a.dtype is DataType.TIMESTAMP
        ):
            return a
        if not a.dtype.is_numeric:
            fits = "a number or a timestamp" if kind in (AggregateKind.MIN, AggregateKind.MAX) else "a number"
            raise QueryError(
                f"{kind.value} needs {fits}",
                detail=f"got {self.expr!r} of type {a.dtype}",
                hint="count(), first(), last() and count_distinct() take any type",
            )
        if kind in (AggregateKind.MIN, AggregateKind.MAX):
            return a
        if kind is AggregateKind.SUM:
            return Typed(DataType.INT64 if a.dtype.is_integer else DataType.FLOAT64, a.nullable)
        # one event has no variance
        return Typed(DataType.FLOAT64, a.nullable or kind is AggregateKind.VARIANCE)

    def key(self) -> tuple[Any, ...]:
        return (self.kind.value, None if self.expr is None else self.expr.key(), self.parameter)

    def __repr__(self) -> str:
        inside = "" if self.expr is None else repr(self.expr)
        if self.parameter is not None:
            inside += f", {self.parameter}"
        return f"{self.kind.value}({inside})"


def count(value: str | Expr | None = None) -> Aggregate:
    """How many events; of a column, how many that are not null."""
    return Aggregate(AggregateKind.COUNT, None if value is None else _expr(value))


def sum_(value: str | Expr) -> Aggregate:
    """The sum: int64 (wraps) of integers, float64 (compensated) of floats."""
    return Aggregate(AggregateKind.SUM, _expr(value))


def min_(value: str | Expr) -> Aggregate:
    """The smallest value; NaN only where there is nothing else."""
    return Aggregate(AggregateKind.MIN, _expr(value))


def max_(value: str | Expr) -> Aggregate:
    """The largest value; NaN is larger than every number."""
    return Aggregate(AggregateKind.MAX, _expr(value))


def avg(value: str | Expr) -> Aggregate:
    """The mean as float64."""
    return Aggregate(AggregateKind.AVG, _expr(value))


def variance(value: str | Expr) -> Aggregate:
    """The sample variance as float64; null of fewer than two values."""
    return Aggregate(AggregateKind.VARIANCE, _expr(value))


def first(value: str | Expr) -> Aggregate:
    """The value of the earliest event that has one, by (event time, source, offset)."""
    return Aggregate(AggregateKind.FIRST, _expr(value))


def last(value: str | Expr) -> Aggregate:
    """The value of the latest event that has one, by (event time, source, offset)."""
    return Aggregate(AggregateKind.LAST, _expr(value))


def count_distinct(value: str | Expr) -> Aggregate:
    """How many different values, exactly. Keeps the window's values until it closes."""
    return Aggregate(AggregateKind.COUNT_DISTINCT, _expr(value))


def quantile(value: str | Expr, q: float) -> Aggregate:
    """The q-quantile, exactly, with linear interpolation. Keeps the window's values until it closes."""
    if not _is_share(q):
        raise QueryError(
            "a quantile lies between 0 and 1", detail=f"got {q!r}", hint="write quantile('x', 0.99)"
        )
    return Aggregate(AggregateKind.QUANTILE, _expr(value), float(q))


def median(value: str | Expr) -> Aggregate:
    """``quantile(value, 0.5)``."""
    return quantile(value, 0.5)


def _is_share(q: object) -> bool:
    return isinstance(q, int | float) and not isinstance(q, bool) and 0.0 <= q <= 1.0


def _expr(value: str | Expr) -> Expr:
    return col(value) if isinstance(value, str) else as_expr(value)
