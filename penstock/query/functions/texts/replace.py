"""The replacement in a string."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction, check_text
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Replace(TextFunction):
    """With ``new`` wherever ``old`` stood, from left to right."""

    name = "replace"
    gives = DataType.STRING

    old: str
    new: str

    def __post_init__(self) -> None:
        check_text(self.name, "old", self.old, "'-'", empty=False)
        check_text(self.name, "new", self.new, "''")

    def of(self, text: str) -> str:
        return text.replace(self.old, self.new)
