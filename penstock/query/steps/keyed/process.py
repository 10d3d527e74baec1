"""A function per key, with state and timers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.query.durations import duration_text
from penstock.query.failures import OnError
from penstock.query.steps.spec import PLACE, TIMED, Keyed, Means, Names, Order, Version, declared
from penstock.query.steps.texts import by_text, function_name
from penstock.query.types import Schema


@declared
@dataclass(frozen=True, eq=False)
class ProcessSpec(Keyed):
    """A function per key with state and timers; events come in (event time, source, offset) order.

    With ``ttl_us``, a key without an event for that long is forgotten, its timers with it.
    """

    name = "process"
    order = Order.MULTIPLIED
    names_columns = False
    has_timers = True

    function: Any  # penstock.query.user_functions.ProcessFunction
    state: Schema
    ttl_us: int | None = None
    on_error: OnError = OnError.STOP
    function_version: Version = None  # as its user counts

    def reads(self, index: int, wanted: Names, schema: Schema) -> Names:
        return TIMED.union(PLACE, schema.names)

    def means(self) -> Means:
        state = tuple(map(str, self.state))
        return (self.keys, function_name(self.function), state, self.ttl_us, self.function_version)

    def details(self) -> str:
        ttl = "" if self.ttl_us is None else f", kept for {duration_text(self.ttl_us)}"
        return f"{by_text(self.keys)}{function_name(self.function)}{ttl}"

    def functions(self) -> tuple[Any, ...]:
        return (self.function,)
