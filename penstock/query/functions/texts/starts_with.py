"""The beginning of a string."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.functions.function import declared
from penstock.query.functions.texts.text_function import TextFunction, check_text
from penstock.query.types import DataType


@declared
@dataclass(frozen=True)
class StartsWith(TextFunction):
    """Whether it begins with ``prefix``."""

    name = "starts_with"
    gives = DataType.BOOL

    prefix: str

    def __post_init__(self) -> None:
        check_text(self.name, "prefix", self.prefix, "'abc'")

    def of(self, text: str) -> bool:
        return text.startswith(self.prefix)
