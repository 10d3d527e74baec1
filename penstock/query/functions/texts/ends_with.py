"""The end of a string."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction, check_text
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class EndsWith(TextFunction):
    """Whether it ends with ``suffix``."""

    name = "ends_with"
    gives = DataType.BOOL

    suffix: str

    def __post_init__(self) -> None:
        check_text(self.name, "suffix", self.suffix, "'abc'")

    def of(self, text: str) -> bool:
        return text.endswith(self.suffix)
