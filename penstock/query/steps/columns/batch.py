"""A function of the columns of many events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.query.failures import OnError
from penstock.query.steps.spec import Means, Names, Order, Stateless, Version, declared, system
from penstock.query.steps.texts import function_name
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class BatchSpec(Stateless):
    """``function(columns) -> columns`` over many events at once, each treated by itself.

    With ``arrow`` the function takes and returns a ``pyarrow.RecordBatch``, else a dict of numpy arrays.
    Fewer or more rows than came in: the result's ``_row`` column says from which input row each output row
    is made.
    """

    name = "batch"
    order = Order.MULTIPLIED
    names_columns = False

    function: Callable[[Any], Any]
    arrow: bool
    on_error: OnError = OnError.STOP
    function_version: Version = None  # as its user counts

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return system(wanted).union(schema.names)

    def means(self) -> Means:
        return (function_name(self.function), self.arrow, self.function_version)

    def details(self) -> str:
        return function_name(self.function) + (" on Arrow" if self.arrow else "")

    def functions(self) -> tuple[Any, ...]:
        return (self.function,)
