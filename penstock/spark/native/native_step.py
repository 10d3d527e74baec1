"""One step of a query as Spark does it: a condition, columns, or a join."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column

from penstock.memory.layout import Layout
from penstock.query.expr import Expr
from penstock.query.graph import QueryVertex
from penstock.query.steps import FilterSpec, LookupSpec, SelectSpec
from penstock.query.types import Schema
from penstock.spark.native.lookups import ArrayLookup, JoinLookup, fits_array, fits_join
from penstock.spark.native.lowering import lower, lowers, named


@dataclass(frozen=True, eq=False)
class NativeStep:
    """One step that Spark does, between the layouts of its input and its output."""

    node: QueryVertex
    source: Layout
    target: Layout

    @property
    def lowers(self) -> bool:
        spec, schema = self.node.spec, self.source.schema
        match spec:
            case FilterSpec(predicate):
                return lowers(predicate, schema)
            case SelectSpec(columns):
                return all(lowers(expr, schema) for name, expr in columns if name in self.target)
            case LookupSpec():
                return fits_array(spec, self.target) or fits_join(spec, self.source)
        return False

    @property
    def joins(self) -> bool:
        spec = self.node.spec
        return isinstance(spec, LookupSpec) and not fits_array(spec, self.target)

    @cached_property
    def condition(self) -> Column | None:
        """Which events stay; None: all."""
        spec = self.node.spec
        if isinstance(spec, FilterSpec):
            return lowered(spec.predicate, self.source.schema)
        return self._array.condition if self._array is not None else None

    @cached_property
    def columns(self) -> list[Column] | None:
        """The output's visible columns; None: they are those of the input."""
        spec = self.node.spec
        if isinstance(spec, SelectSpec):
            chosen = [(name, expr) for name, expr in spec.columns if name in self.target]
            return [lowered(expr, self.source.schema).alias(name) for name, expr in chosen]
        return None if self._array is None else self.with_taken(self._array.columns)

    @property
    def taken(self) -> dict[str, Column] | None:
        """What a lookup in constant arrays adds, as columns of its input; None for any other step."""
        return None if self._array is None else self._array.columns

    def with_taken(self, taken: dict[str, Column]) -> list[Column]:
        """The columns after a lookup, which adds ``taken``."""
        names = self.target.visible.names
        return [taken[name].alias(name) if name in taken else named(name) for name in names]

    @cached_property
    def _array(self) -> ArrayLookup | None:
        spec = self.node.spec
        is_array = isinstance(spec, LookupSpec) and not self.joins
        return ArrayLookup(spec, self.target) if is_array else None  # type: ignore[arg-type]

    @cached_property
    def join(self) -> JoinLookup:
        spec = self.node.spec_as(LookupSpec)
        return JoinLookup(spec, self.target)


def lowered(expr: Expr, schema: Schema) -> Column:
    """The native column of an expression of which it is known that there is one."""
    column = lower(expr, schema)
    assert column is not None
    return column
