"""The search by pattern."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction, compiled
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class RegexpMatch(TextFunction):
    """Whether a part of it matches ``pattern``, a regular expression of Python's."""

    name = "regexp_match"
    gives = DataType.BOOL

    pattern: str

    def __post_init__(self) -> None:
        compiled(self.pattern, self.name)

    def of(self, text: str) -> bool:
        return compiled(self.pattern, self.name).search(text) is not None
