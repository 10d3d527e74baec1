"""A function of the events of two streams per key and window."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.query.steps.spec import PLACE, TIMED, Joining, Means, Names, Order, declared
from penstock.query.steps.texts import function_name, pairs_text
from penstock.query.types import Schema
from penstock.query.windows import Sliding


@declared
@dataclass(frozen=True, eq=False)
class CoGroupSpec(Joining):
    """``function(group) -> iterable of dict``, once per key and window with the events of both sides.

    ``group`` is a :class:`penstock.query.user_functions.Group`; both sides are in (event time, source,
    offset) order.
    """

    name = "cogroup"
    order = Order.MULTIPLIED
    names_columns = False

    window: Sliding
    function: Callable[[Any], Iterable[dict[str, Any]]]

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return TIMED.union(PLACE, schema.names)

    def means(self) -> Means:
        return (self.on, self.window.said(), function_name(self.function))

    def details(self) -> str:
        return f"on {pairs_text(self.on)}, {self.window}: {function_name(self.function)}"

    def functions(self) -> tuple[Any, ...]:
        return (self.function,)
