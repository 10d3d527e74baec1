"""A function of one event that gives any number of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.query.failures import OnError
from penstock.query.steps.spec import Means, Names, Order, Stateless, Version, declared, system
from penstock.query.steps.texts import function_name
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class FlatMapSpec(Stateless):
    """``function(event: dict) -> iterable of dict``: any Python, at the price of Python."""

    name = "flat_map"
    order = Order.MULTIPLIED
    names_columns = False

    function: Callable[[dict[str, Any]], Iterable[dict[str, Any]]]
    on_error: OnError = OnError.STOP
    function_version: Version = None  # as its user counts

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return system(wanted).union(schema.names)

    def means(self) -> Means:
        return (function_name(self.function), self.function_version)

    def details(self) -> str:
        return function_name(self.function)

    def functions(self) -> tuple[Any, ...]:
        return (self.function,)
