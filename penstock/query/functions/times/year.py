"""The year of a timestamp."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.times.time_function import TimeFunction


@declared
@dataclass(frozen=True)
class Year(TimeFunction):
    """The year in UTC, by the Gregorian calendar, as int32."""

    name = "year"
