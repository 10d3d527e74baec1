"""The letters made small."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Lower(TextFunction):
    """Every letter small, as Python's ``str.lower``."""

    name = "lower"
    gives = DataType.STRING

    def of(self, text: str) -> str:
        return text.lower()
