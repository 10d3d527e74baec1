"""A timestamp cut down to a multiple of a unit."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.durations import Duration, duration_text, duration_us
from penstock.query.errors import QueryError
from penstock.query.functions.function import declared
from penstock.query.functions.times.time_function import TimeFunction
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Truncate(TimeFunction):
    """The largest multiple of ``unit`` since 1970 that is not later, also before 1970."""

    name = "truncate"
    gives = DataType.TIMESTAMP

    unit: Duration

    def __post_init__(self) -> None:
        if self.unit_us <= 0:
            raise QueryError(
                "truncation unit must be positive", detail=f"got '{self.unit}'", hint="write e.g. '1m'"
            )
        object.__setattr__(self, "unit", duration_text(self.unit_us))  # one word for one length

    @property
    def unit_us(self) -> int:
        return duration_us(self.unit, "truncation unit")
