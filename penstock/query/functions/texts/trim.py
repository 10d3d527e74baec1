"""The spaces around a string."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction, check_text
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Trim(TextFunction):
    """Without ``characters`` (blanks, tabs, ends of line) at both ends."""

    name = "trim"
    gives = DataType.STRING

    characters: str = " \t\r\n"

    def __post_init__(self) -> None:
        check_text(self.name, "characters", self.characters, "' '", empty=False)

    def of(self, text: str) -> str:
        return text.strip(self.characters)
