"""The part that matches a pattern."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.errors import QueryError
from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction, check_count, compiled
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class RegexpExtract(TextFunction):
    """The first part that matches ``pattern``, or its group of that number; null where nothing does."""

    name = "regexp_extract"
    gives = DataType.STRING
    partial = True

    pattern: str
    group: int = 0

    def __post_init__(self) -> None:
        check_count(self.name, "group", self.group, 0, "1")
        groups = compiled(self.pattern, self.name).groups
        if self.group > groups:
            raise QueryError(
                f"{self.name} needs a group that the pattern has",
                detail=f"got group {self.group} of {self.pattern!r}, which has {groups}",
                hint="put parentheses around what is wanted",
            )

    def of(self, text: str) -> str | None:
        match = compiled(self.pattern, self.name).search(text)
        return None if match is None else match.group(self.group)
