"""Lengths of time as people write them (``'10s'``), in microseconds as the engine counts them."""

from __future__ import annotations

import re
from datetime import timedelta

from penstock.query.errors import QueryError

Duration = str | timedelta

_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_LIMIT_US = 1 << 62  # so that a time plus or minus a length stays a 64-bit number
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|m|h|d)\s*")


def duration_us(value: Duration, what: str = "duration") -> int:
    """Microseconds of ``'1h30m'``, ``'500ms'``, ``'-5s'`` or a timedelta.

    >>> duration_us("1.5s")
    1500000
    """
    us = _parsed_us(value, what)
    if abs(us) >= _LIMIT_US:
        raise QueryError(f"{what} is too long", detail=f"got '{value}'", hint="146,000 years are the limit")
    return us


def positive_us(value: Duration | None, what: str) -> int | None:
    """The same of a length that must be positive, or is left out."""
    if value is None:
        return None
    us = duration_us(value, what)
    if us <= 0:
        raise QueryError(f"{what} must be positive", detail=f"got '{value}'", hint="write e.g. '10m'")
    return us


def _parsed_us(value: Duration, what: str) -> int:
    if isinstance(value, timedelta):
        return round(value / timedelta(microseconds=1))
    if not isinstance(value, str):
        raise QueryError(
            f"{what} must be text or a timedelta", detail=f"got {value!r}", hint="write e.g. '10s'"
        )
    text, total, position = value.strip(), 0.0, 0
    sign = -1 if text.startswith("-") else 1
    text = text.removeprefix("-")
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            break
        total += float(part.group(1)) * _UNITS_US[part.group(2)]
        position = part.end()
    if not text or position < len(text):
        raise QueryError(
            f"{what} is not a length of time",
            detail=f"got '{value}'",
            hint="units are us, ms, s, m, h, d: '1h30m'",
        )
    return sign * round(total)


def duration_text(us: int) -> str:
    """The shortest text for a number of microseconds.

    >>> duration_text(90_000_000)
    '1m30s'
    """
    if us == 0:
        return "0s"
    if us < 0:
        return "-" + duration_text(-us)
    parts, rest = [], us
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, _UNITS_US[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
