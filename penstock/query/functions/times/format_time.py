"""A timestamp written as a string."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.query.errors import QueryError
from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import check_text
from penstock.query.functions.times.time_function import TimeFunction
from penstock.query.types import DataType

_CODES = "YmdHMSfj%"  # those that mean the same in every locale
_ERA_US = 146_097 * 86_400_000_000  # after 400 years the calendar repeats itself
_FIRST = datetime(2000, 1, 1)
_FIRST_US = 946_684_800_000_000


@declared
@dataclass(frozen=True)
class FormatTime(TimeFunction):
    """The time in UTC by the codes ``%Y``, ``%m``, ``%d``, ``%H``, ``%M``, ``%S``, ``%f``, ``%j`` and
    ``%%`` of Python's ``strftime``. Costs some microseconds per event."""

    name = "format_time"
    gives = DataType.STRING
    makes_text = True

    format: str

    def __post_init__(self) -> None:
        check_text(self.name, "format", self.format, "'%Y-%m-%d %H:%M:%S'")
        unknown = [
            code for code in re.findall(r"%(.?)", self.format, re.DOTALL) if not code or code not in _CODES
        ]
        if unknown:
            raise QueryError(
                "format_time got no format of a time",
                detail=f"got {self.format!r}",
                hint=f"write e.g. '%Y-%m-%d %H:%M:%S'; known are {', '.join(f'%{code}' for code in _CODES)}",
            )

    def of(self, time_us: int) -> str:
        """Its value for microseconds since 1970."""
        era, rest_us = divmod(time_us - _FIRST_US, _ERA_US)
        time = _FIRST + timedelta(microseconds=rest_us)
        year = time.year + 400 * era
        known = {
            "Y": f"{year:04d}",
            "m": f"{time.month:02d}",
            "d": f"{time.day:02d}",
            "H": f"{time.hour:02d}",
            "M": f"{time.minute:02d}",
            "S": f"{time.second:02d}",
            "f": f"{time.microsecond:06d}",
            "j": f"{time.timetuple().tm_yday:03d}",
            "%": "%",
        }
        return re.sub("%(.)", lambda code: known[code.group(1)], self.format)
