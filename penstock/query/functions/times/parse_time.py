"""A timestamp read from a string."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.query.errors import QueryError
from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction, check_text
from penstock.query.types import DataType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CODES = "YmdHMSfzj%"  # those that mean the same in every locale


@declared
@dataclass(frozen=True)
class ParseTime(TextFunction):
    """The timestamp that a string says by the codes of Python's ``strptime``, in UTC unless it has
    a ``%z``; null where it does not fit."""

    name = "parse_time"
    gives = DataType.TIMESTAMP
    partial = True

    format: str

    def __post_init__(self) -> None:
        check_text(self.name, "format", self.format, "'%Y-%m-%d %H:%M:%S'", empty=False)
        codes = re.findall(r"%(.?)", self.format)
        unknown = [code for code in codes if not code or code not in _CODES]
        if unknown or not codes:
            raise QueryError(
                "parse_time got no format of a time",
                detail=f"got {self.format!r}",
                hint=f"write e.g. '%Y-%m-%d %H:%M:%S'; known are {', '.join(f'%{code}' for code in _CODES)}",
            )

    def of(self, text: str) -> int | None:
        try:
            time = datetime.strptime(text, self.format)
        except (ValueError, OverflowError):
            return None
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return (aware - _EPOCH) // _EPOCH.resolution
