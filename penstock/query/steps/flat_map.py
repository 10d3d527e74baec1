"""A function of one event that gives any number of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from penstock.query.failures import OnError
from penstock.query.steps.spec import Order, Stateless, Version, declared, system
from penstock.query.steps.texts import function_name
from penstock.query.types import Schema
from penstock.query.word import LATER


@declared
@dataclass(frozen=True, eq=False)
class FlatMapSpec(Stateless):
    """``function(event: dict) -> iterable of dict``: any Python, at the price of Python."""

    name = "flat_map"
    order = Order.MULTIPLIED
    names_columns = False

    function: Callable[[dict[str, Any]], Iterable[dict[str, Any]]]
    on_error: OnError = OnError.STOP
    function_version: Version = field(default=None, metadata=LATER)  # as its user counts

    def reads(self, index: int, wanted: AbstractSet[str], schema: Schema) -> AbstractSet[str]:
        return system(wanted).union(schema.names)

    def details(self) -> str:
        return function_name(self.function)

    def functions(self) -> tuple[Any, ...]:
        return (self.function,)
