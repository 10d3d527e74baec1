"""The part between separators."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction, check_count, check_text
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class SplitPart(TextFunction):
    """The part of that number, from 1, between separators; '' where there are fewer."""

    name = "split_part"
    gives = DataType.STRING

    separator: str
    part: int

    def __post_init__(self) -> None:
        check_text(self.name, "separator", self.separator, "','", empty=False)
        check_count(self.name, "part", self.part, 1, "1")

    def of(self, text: str) -> str:
        parts = text.split(self.separator)
        return parts[self.part - 1] if self.part <= len(parts) else ""
