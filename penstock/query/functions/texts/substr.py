"""The part of a string."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction, check_count
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Substr(TextFunction):
    """``length`` characters from ``start`` on, counted from 0; without ``length`` all that follow."""

    name = "substr"
    gives = DataType.STRING

    start: int
    length: int | None = None

    def __post_init__(self) -> None:
        check_count(self.name, "start", self.start, 0, "0")
        if self.length is not None:
            check_count(self.name, "length", self.length, 0, "3")

    def of(self, text: str) -> str:
        return text[self.start :] if self.length is None else text[self.start : self.start + self.length]
