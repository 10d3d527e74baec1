"""The minute of a timestamp."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.times.time_function import TimeFunction


@declared
@dataclass(frozen=True)
class Minute(TimeFunction):
    """The minute, 0 to 59."""

    name = "minute"
