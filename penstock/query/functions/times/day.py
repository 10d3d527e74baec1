"""The day of a timestamp."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.times.time_function import TimeFunction


@declared
@dataclass(frozen=True)
class Day(TimeFunction):
    """The day of the month in UTC, 1 to 31."""

    name = "day"
