"""The quarter of a timestamp."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.times.time_function import TimeFunction


@declared
@dataclass(frozen=True)
class Quarter(TimeFunction):
    """The quarter of the year in UTC, 1 to 4."""

    name = "quarter"
