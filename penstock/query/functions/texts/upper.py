"""The letters made capital."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Upper(TextFunction):
    """Every letter a capital, as Python's ``str.upper``."""

    name = "upper"
    gives = DataType.STRING

    def of(self, text: str) -> str:
        return text.upper()
