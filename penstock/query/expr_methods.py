"""The functions of the language as methods of expressions. Made by ``make reference``; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.query.durations import Duration
    from penstock.query.expr import Expr, Operand


def _call(name: str, *arguments: Any) -> Expr:
    from penstock.query.functions.calls import call  # which builds on expressions

    return call(name, *arguments)


class Methods:
    """What can be written behind an expression, besides operators."""

    def abs(self) -> Expr:
        """Without its sign; keeps the type, and the smallest integer stays what it is."""
        return _call("abs", self)

    def ceil(self) -> Expr:
        """The smallest int64 not below; beyond its range the nearest int64, and NaN gives 0."""
        return _call("ceil", self)

    def concat(self, *others: Operand) -> Expr:
        """The string and the others behind it; null if one is. Costs some microseconds per event."""
        return _call("concat", self, *others)

    def contains(self, part: str) -> Expr:
        """Whether ``part`` occurs in it."""
        return _call("contains", self, part)

    def day(self) -> Expr:
        """The day of the month in UTC, 1 to 31."""
        return _call("day", self)

    def day_of_week(self) -> Expr:
        """The day of the week in UTC: 1 is Monday, 7 is Sunday."""
        return _call("day_of_week", self)

    def ends_with(self, suffix: str) -> Expr:
        """Whether it ends with ``suffix``."""
        return _call("ends_with", self, suffix)

    def exp(self) -> Expr:
        """e to the power of x, as float64."""
        return _call("exp", self)

    def floor(self) -> Expr:
        """The largest int64 not above; beyond its range the nearest int64, and NaN gives 0."""
        return _call("floor", self)

    def format_time(self, format: str) -> Expr:
        """The time in UTC by the codes ``%Y``, ``%m``, ``%d``, ``%H``, ``%M``, ``%S``, ``%f``, ``%j`` and
        ``%%`` of Python's ``strftime``. Costs some microseconds per event."""
        return _call("format_time", self, format)

    def hour(self) -> Expr:
        """The hour in UTC, 0 to 23."""
        return _call("hour", self)

    def length(self) -> Expr:
        """The number of characters (code points) as int32."""
        return _call("length", self)

    def log(self) -> Expr:
        """The natural logarithm as float64; minus infinity of 0, NaN of a negative number."""
        return _call("log", self)

    def lower(self) -> Expr:
        """Every letter small, as Python's ``str.lower``."""
        return _call("lower", self)

    def minute(self) -> Expr:
        """The minute, 0 to 59."""
        return _call("minute", self)

    def month(self) -> Expr:
        """The month in UTC, 1 to 12."""
        return _call("month", self)

    def parse_time(self, format: str) -> Expr:
        """The timestamp that a string says by the codes of Python's ``strptime``, in UTC unless it has
        a ``%z``; null where it does not fit."""
        return _call("parse_time", self, format)

    def pow(self, y: Operand) -> Expr:
        """x to the power of y as float64; NaN where x is negative and y has a fraction."""
        return _call("pow", self, y)

    def quarter(self) -> Expr:
        """The quarter of the year in UTC, 1 to 4."""
        return _call("quarter", self)

    def regexp_extract(self, pattern: str, group: int = 0) -> Expr:
        """The first part that matches ``pattern``, or its group of that number; null where nothing does."""
        return _call("regexp_extract", self, pattern, group)

    def regexp_match(self, pattern: str) -> Expr:
        """Whether a part of it matches ``pattern``, a regular expression of Python's."""
        return _call("regexp_match", self, pattern)

    def replace(self, old: str, new: str) -> Expr:
        """With ``new`` wherever ``old`` stood, from left to right."""
        return _call("replace", self, old, new)

    def round(self) -> Expr:
        """The nearest whole number, halves away from zero; keeps the type."""
        return _call("round", self)

    def second(self) -> Expr:
        """The second, 0 to 59."""
        return _call("second", self)

    def sign(self) -> Expr:
        """-1, 0 or 1 in the type of x; NaN gives NaN."""
        return _call("sign", self)

    def split_part(self, separator: str, part: int) -> Expr:
        """The part of that number, from 1, between separators; '' where there are fewer."""
        return _call("split_part", self, separator, part)

    def sqrt(self) -> Expr:
        """The square root as float64; NaN of a negative number."""
        return _call("sqrt", self)

    def starts_with(self, prefix: str) -> Expr:
        """Whether it begins with ``prefix``."""
        return _call("starts_with", self, prefix)

    def substr(self, start: int, length: int | None = None) -> Expr:
        """``length`` characters from ``start`` on, counted from 0; without ``length`` all that follow."""
        return _call("substr", self, start, length)

    def trim(self, characters: str = " \t\r\n") -> Expr:
        """Without ``characters`` (blanks, tabs, ends of line) at both ends."""
        return _call("trim", self, characters)

    def truncate(self, unit: Duration) -> Expr:
        """The largest multiple of ``unit`` since 1970 that is not later, also before 1970."""
        return _call("truncate", self, unit)

    def upper(self) -> Expr:
        """Every letter a capital, as Python's ``str.upper``."""
        return _call("upper", self)

    def year(self) -> Expr:
        """The year in UTC, by the Gregorian calendar, as int32."""
        return _call("year", self)
