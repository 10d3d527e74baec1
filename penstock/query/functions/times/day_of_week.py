"""The day of week of a timestamp."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.times.time_function import TimeFunction


@declared
@dataclass(frozen=True)
class DayOfWeek(TimeFunction):
    """The day of the week in UTC: 1 is Monday, 7 is Sunday."""

    name = "day_of_week"
