"""Functions of timestamps, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.functions.times.day import Day
from penstock.query.functions.times.day_of_week import DayOfWeek
from penstock.query.functions.times.format_time import FormatTime
from penstock.query.functions.times.hour import Hour
from penstock.query.functions.times.minute import Minute
from penstock.query.functions.times.month import Month
from penstock.query.functions.times.parse_time import ParseTime
from penstock.query.functions.times.second import Second
from penstock.query.functions.times.truncate import Truncate
from penstock.query.functions.times.year import Year

__all__ = [
    "Day",
    "DayOfWeek",
    "FormatTime",
    "Hour",
    "Minute",
    "Month",
    "ParseTime",
    "Second",
    "Truncate",
    "Year",
]
