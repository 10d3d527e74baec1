"""The length of a string."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class Length(TextFunction):
    """The number of characters (code points) as int32."""

    name = "length"
    gives = DataType.INT32

    def of(self, text: str) -> int:
        return len(text)
