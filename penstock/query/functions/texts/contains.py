"""The search in a string."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction, check_text
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Contains(TextFunction):
    """Whether ``part`` occurs in it."""

    name = "contains"
    gives = DataType.BOOL

    part: str

    def __post_init__(self) -> None:
        check_text(self.name, "part", self.part, "'abc'")

    def of(self, text: str) -> bool:
        return self.part in text
