"""The month of a timestamp."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.times.time_function import TimeFunction


@declared
@dataclass(frozen=True)
class Month(TimeFunction):
    """The month in UTC, 1 to 12."""

    name = "month"
