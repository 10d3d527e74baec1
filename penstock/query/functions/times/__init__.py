"""Functions of timestamps, each in a file of its own. Made by ``make reference``; do not edit."""

from __future__ import annotations

from penstock.query.functions.times.day import Day as Day
from penstock.query.functions.times.day_of_week import DayOfWeek as DayOfWeek
from penstock.query.functions.times.format_time import FormatTime as FormatTime
from penstock.query.functions.times.hour import Hour as Hour
from penstock.query.functions.times.minute import Minute as Minute
from penstock.query.functions.times.month import Month as Month
from penstock.query.functions.times.parse_time import ParseTime as ParseTime
from penstock.query.functions.times.quarter import Quarter as Quarter
from penstock.query.functions.times.second import Second as Second
from penstock.query.functions.times.truncate import Truncate as Truncate
from penstock.query.functions.times.year import Year as Year
